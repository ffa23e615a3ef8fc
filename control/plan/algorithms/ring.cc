// Ring: the flat ring of all servers (HiPS's RS; BML, section 2.2). There is one thread and one
// step of the pattern ring, over a cycle on which consecutive servers are neighbours
// (server_cycle.h): on a star the order of the servers. It is what the papers compare with: on
// BCube it uses one port of each server to send and one to receive (HiPS, section 4.1).
#include <fmt/format.h>
#include <memory>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/server_cycle.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {

Plan make_ring_plan(const Topology& topology, const Placement& placement) {
  require_company("ring", placement);
  const std::uint32_t ranks = placement.ranks();
  if (ranks > kMaxRunnableRadix) {
    throw UsageError(fmt::format(
        "algorithm ring on {} servers: one ring has at most {}; expected fewer servers, "
        "or hips:ring, which has a ring of its own for each level",
        ranks, kMaxRunnableRadix));
  }
  auto order = std::make_shared<DigitOrder>();
  auto backwards = std::make_shared<DigitOrder>();
  unsigned place = 0;
  for (const Rank rank : server_cycle(placement)) {
    order->set(place, rank);
    backwards->set((ranks - place) % ranks, rank);
    ++place;
  }
  std::vector<PlanThread> threads = {{1, {{ranks, 1, Pattern::ring, std::move(order)}}}};
  if (!topology.space().cabled()) {
    return Plan("ring", topology, placement, std::move(threads),
                placement.is_grid() ? LinkUse::exclusive : LinkUse::shared);
  }
  threads.push_back({1, {{ranks, 1, Pattern::ring, std::move(backwards)}}});
  return Plan("ring", topology, placement, std::move(threads),
              are_whole_rings(topology, placement) ? LinkUse::exclusive : LinkUse::shared);
}

}  // namespace gradcube::control
