// The flows that a thread of a plan has at a server: one to each peer of each step, in both stages;
// where steps double, in the first.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_STEP_FLOWS_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_STEP_FLOWS_H_

#include <cstdint>

#include "bcube_forwarding/path_set.h"
#include "control/plan/base/plan.h"
#include "control/plan/thread_schedule.h"
#include "dataplane/engine/flows/flow.h"

namespace gradcube::dataplane {

// Calls add(key) for each: first those of the aggregation; in a stage by step, and in a step by the
// number of the peer. rank: the server's, in the plan.
template <typename Add>
void for_each_step_flow(const control::Plan& plan, control::Rank rank,
                        const control::ThreadSchedule& schedule, const Add& add) {
  for (const auto stage : {protocol::Stage::aggregation, protocol::Stage::broadcast}) {
    if (plan.doubles() && stage == protocol::Stage::broadcast) continue;
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      for (unsigned i = 0; i < schedule.step(w).peers; ++i) {
        const unsigned r = schedule.step(w).offset_of_peer(i);
        const control::Rank peer = schedule.peer(w, r);
        const bcube::ServerId from = plan.placement().server(peer);
        add(FlowKey{.stage = stage,
                    .step = static_cast<std::uint8_t>(w),
                    .offset = static_cast<std::uint8_t>(r),
                    .peer = from,
                    .planned = plan.route(rank, peer, schedule.thread()),
                    .port_in = static_cast<std::uint8_t>(bcube::port_at_end(
                        plan.space(), from, plan.route(peer, rank, schedule.thread())))});
      }
    }
  }
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_STEP_FLOWS_H_
