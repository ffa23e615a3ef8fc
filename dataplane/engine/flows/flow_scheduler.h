// Which flow sends the next new segment through a port.
//
//   1. jobs share the port by weight: deficit round robin over the jobs that have something to
//      send. The mail of a job takes turns of its own, as if it were another job of its weight
//   2. within a job, lanes by priority, the highest first
//   3. within a lane, what belongs to the oldest collective first
//   4. within a collective, the plan's steps as control/plan/service_order.h says, results last
//   5. within a step, the flows in rotation (flow_rotation.h)
//
// Short collectives do not wait for their jobs' turns: serve_short() serves them in the same order,
// and charges their jobs for it. A job that is ahead by a turn waits for the next one, so that the
// shares stay those of the weights.
//
// Flows sleep until wake(), so the cost is that of what is awake, not of what is attached.
//
// add() and make_room() allocate and belong to set-up. Owned and used by one engine.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_SCHEDULER_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_SCHEDULER_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/flows/flow_rotation.h"
#include "protocol/index_set.h"

namespace gradcube::dataplane {

class EngineJob;

class FlowScheduler {
 public:
  struct Rank {
    std::uint32_t weight = 1;  // the job's
    unsigned lane = 0;
    std::int32_t priority = 0;  // the lane's
    unsigned place = 0;         // the lane's, among those of its job: the first is served first
    unsigned step = 0;          // its place: lower ones are served first
    bool mail = false;          // the flow carries the job's mail
  };

  // quantum: bytes that the job of the least weight may send in its turn, at least a segment's. The
  // turns of the others are longer in proportion.
  explicit FlowScheduler(std::uint32_t quantum) : quantum_(quantum) {}

  // For one more flow of the job, as FlowRotation::make_room().
  void make_room(const EngineJob& job, const Rank& rank);
  // Sets flow.scheduled. Where there is no memory the flow is not here.
  void add(const EngineJob& job, const Rank& rank, Flow& flow);
  void remove_all_of(const EngineJob& job);
  void remove(Flow& flow);

  void wake(const Flow& flow) {
    // Where the flow is awake its share is, too.
    if (flow.scheduled.rotation->wake(flow.scheduled.in_rotation)) {
      awake_.insert(flow.scheduled.share);
    }
    if (flow.sends_short) short_.insert(flow.scheduled.share);
  }

  // Serves flows until `limit` segments were sent or none is left that can send.
  // send(flow, bytes&) -> FlowRotation::Visit; sets `bytes` where it has sent a segment.
  template <typename Send>
  unsigned serve(unsigned limit, Send&& send);
  // The same of the flows that send short collectives.
  template <typename Send>
  unsigned serve_short(unsigned limit, Send&& send);

 private:
  struct Lane {
    unsigned number = 0;
    std::int32_t priority = 0;
    std::vector<std::unique_ptr<FlowRotation>> steps;
  };
  // The part of the port that a job's collectives have, or its mail.
  struct Share {
    const EngineJob* job = nullptr;
    bool mail = false;
    std::uint32_t weight = 1;
    std::int64_t quantum = 0;  // of a turn
    std::int64_t credit = 0;   // bytes that it may send in this round
    std::vector<Lane> lanes;   // by descending priority
    bool any_awake() const;
    bool is_ahead() const { return credit <= -quantum; }
  };

  // Each is made if it is not there: one without flows does no harm.
  std::size_t share_of(const EngineJob& job, const Rank& rank);
  Lane& lane_of(Share& share, const Rank& rank);
  FlowRotation& rotation_of(Share& share, const Rank& rank);
  void renew_quanta();
  template <typename Send>
  unsigned serve_share(Share& share, bool alone, unsigned limit, Send&& send);
  template <typename Send>
  unsigned serve_lane(Share& share, Lane& lane, bool alone, unsigned limit, Send&& send);

  std::uint32_t quantum_;
  std::vector<Share> shares_;
  protocol::IndexSet awake_;  // of shares_
  protocol::IndexSet short_;  // the same, of which a flow that is awake may send what is short
  std::size_t next_ = 0;      // whose turn it is
};

template <typename Send>
unsigned FlowScheduler::serve(unsigned limit, Send&& send) {
  unsigned sent = 0;
  // Jobs that stay awake and were passed since one has sent something.
  std::size_t passed = 0;
  while (sent < limit && passed < awake_.count()) {
    std::size_t turn = awake_.next(next_);
    if (turn == awake_.size()) turn = awake_.next(0);
    next_ = turn;
    Share& share = shares_[turn];
    if (share.credit <= 0) share.credit += share.quantum;
    const bool alone = awake_.count() == 1;
    const unsigned now = serve_share(share, alone, limit - sent, send);
    sent += now;
    const bool sleeps = !share.any_awake();
    if (now != 0) {
      passed = 0;
    } else if (!sleeps) {
      ++passed;
    }
    if (sleeps) awake_.erase(turn);
    // What nobody else wanted is neither saved nor owed.
    if (alone || sleeps) share.credit = 0;
    // A job keeps its turn where `limit` was reached before its credit was used up.
    if (share.credit <= 0 || now == 0) next_ = turn + 1;
  }
  return sent;
}

template <typename Send>
unsigned FlowScheduler::serve_short(unsigned limit, Send&& send) {
  unsigned sent = 0;
  for (std::size_t at = short_.next(0); at < short_.size(); at = short_.next(at + 1)) {
    Share& share = shares_[at];
    bool more = false;
    const auto send_short = [&](Flow& flow, std::uint32_t& bytes) {
      if (!flow.sends_short) return FlowRotation::Visit::later;
      const bool waits = share.is_ahead();
      const FlowRotation::Visit found = waits ? FlowRotation::Visit::later : send(flow, bytes);
      more = more || found != FlowRotation::Visit::nothing;
      return found;
    };
    sent += serve_share(share, true, limit - sent, send_short);
    if (!more && sent < limit) short_.erase(at);
    if (!share.any_awake()) {
      awake_.erase(at);
      share.credit = 0;
    }
  }
  return sent;
}

template <typename Send>
unsigned FlowScheduler::serve_share(Share& share, bool alone, unsigned limit, Send&& send) {
  unsigned sent = 0;
  for (Lane& lane : share.lanes) {
    if (sent == limit || (!alone && share.credit <= 0)) break;
    sent += serve_lane(share, lane, alone, limit - sent, send);
  }
  return sent;
}

template <typename Send>
unsigned FlowScheduler::serve_lane(Share& share, Lane& lane, bool alone, unsigned limit,
                                   Send&& send) {
  std::uint64_t oldest = UINT64_MAX;
  std::uint64_t newest = 0;
  for (const auto& flows : lane.steps) {
    flows->for_each_awake([&](const Flow& flow) {
      oldest = std::min(oldest, flow.sending);
      newest = std::max(newest, flow.sending);
      return FlowRotation::Visit::later;
    });
  }
  unsigned sent = 0;
  // First what belongs to the oldest collective, then all else.
  for (const std::uint64_t most : {oldest, UINT64_MAX}) {
    for (const auto& flows : lane.steps) {
      unsigned now = 1;
      // Alone on the port, a job needs no turns. Else its credit is looked at for each segment,
      // since their lengths differ.
      while (now != 0 && sent < limit && (alone || share.credit > 0)) {
        now = flows->serve(alone ? limit - sent : 1, [&](Flow& flow) {
          if (flow.sending > most) return FlowRotation::Visit::later;
          std::uint32_t bytes = 0;
          const FlowRotation::Visit found = send(flow, bytes);
          share.credit -= bytes;
          return found;
        });
        sent += now;
      }
    }
    if (oldest >= newest) break;
  }
  return sent;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_SCHEDULER_H_
