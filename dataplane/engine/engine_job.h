// What one engine holds of one job: the threads it runs, its packet memory, and the count of
// packets that point into the trainer's memory.
//
// Packet memory. The job's reservation (payload_packets.h) has room for its collectives' windows
// and one for its mail. Its hub has a reservation of its own (engine_hub.h).
//
// Why the reservation is enough: a receiver holds at most one copy of each sequence of a window. So
// each sequence that is granted and not held by its receiver has room that no held segment takes.
// Other copies may take this room, but they lie in rings and queues, and these drain. So the lowest
// sequence that is not reduced yet, which its receiver cannot hold, can be sent after a while,
// whatever the other flows and the other jobs do.
//
// Made and destroyed by the control thread; between attach and detach it belongs to the engine's
// thread. Destroy it, and the session with its region, only when references() is 0: packets that
// carry segments of this trainer may still lie in other servers' queues.
//
// States. The job's servers change theirs one after the other, as messages reach them: a server may
// send in an epoch while its neighbour is only armed for it.
//
//            frames  sends  submissions  what is published    completes
//   armed    taken   no     not taken    does not begin       what a cut fails
//   running  taken   yes    taken        begins               yes
//   held     taken   yes    not taken    begins               yes
//   halted   dropped no     not taken    stands still         nothing
//
//   armed    the epoch is known, and neighbours may have started. What they contribute waits for
//            this server's own submissions.
//   running  all goes on.
//   held     what all trainers have submitted runs to its end, so that the job's servers can agree
//            on where it is cut. Also after a disagreement or an overflow: these stop their own
//            collective and what lies behind it in its lane, and nothing else.
//   halted   nothing moves any more: what has completed is final.
//
//   attach -> armed -> start -> running -> hold -> held -> halt -> halted -> reset -> armed (of the
//   next epoch). halt and detach: from any state. A server's engines are all halted before one is
//   reset, and where frames refer to memory all servers' of the process: what that one has not done
//   counts as failed from then on, and its buffers are the trainers' again.
#ifndef GRADCUBE_DATAPLANE_ENGINE_ENGINE_JOB_H_
#define GRADCUBE_DATAPLANE_ENGINE_ENGINE_JOB_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/engine/flows/payload_packets.h"
#include "dataplane/engine/frame_keys.h"
#include "dataplane/engine/hub/engine_hub.h"
#include "dataplane/engine/lane_plan.h"
#include "dataplane/engine/messages/mailroom.h"
#include "dataplane/engine/plan_executor.h"
#include "dataplane/engine/session/rank_order.h"
#include "protocol/job_id.h"
#include "protocol/time.h"

namespace gradcube::dataplane {

// What a job may use at one engine.
struct JobPackets {
  // Segments that a neighbour may be ahead, per flow; the same on all servers of the job.
  unsigned window = 0;
  // For the windows of all flows. At most PayloadPackets::kMost segments count.
  PacketReservation reserved{};
};

class EngineJob {
 public:
  EngineJob(protocol::JobId id, Session& session, const LanePlans& lanes, std::uint32_t weight,
            bool leader, JobPackets packets = {})
      : id_(id),
        session_(session),
        lanes_(lanes),
        weight_(weight),
        leader_(leader),
        window_(packets.window),
        payloads_(std::move(packets.reserved)) {}
  EngineJob(const EngineJob&) = delete;
  EngineJob& operator=(const EngineJob&) = delete;

  protocol::JobId id() const { return id_; }
  Session& session() { return session_; }
  const Session& session() const { return session_; }
  const LanePlans& lanes() const { return lanes_; }
  std::uint32_t weight() const { return weight_; }
  bool is_leader() const { return leader_; }
  std::deque<PlanExecutor>& executors() { return executors_; }
  // Those of its collectives, of its hub and of its mail.
  template <typename Function>
  void for_each_flow(const Function& function) {
    for (PlanExecutor& executor : executors_) {
      for (Flow& flow : executor.flows()) function(flow);
    }
    if (hub_ != nullptr) hub_->for_each_flow(function);
    if (mailroom_ == nullptr) return;
    mailroom_->for_each_channel([&function](MailChannel& channel) {
      for (Flow& flow : channel.flows()) function(flow);
    });
  }
  // Of the leader engine alone, and where there are trainers; else null.
  Mailroom* mailroom() { return mailroom_.get(); }
  const Mailroom* mailroom() const { return mailroom_.get(); }
  void set_mailroom(std::unique_ptr<Mailroom> mailroom) { mailroom_ = std::move(mailroom); }

  // The hub that its trainers push to; null if there is none. One that is taken off waits for its
  // last packet here: set_hub() allocates for that.
  EngineHub* hub() { return hub_.get(); }
  void set_hub(std::unique_ptr<EngineHub> hub) {
    hubs_off_.reserve(hubs_off_.size() + 1);
    hub_ = std::move(hub);
  }
  void take_hub_off() {
    if (hub_ != nullptr) hubs_off_.push_back(std::move(hub_));
  }
  // Control thread: frees hubs that were taken off, as far as no packet points into them. Whether
  // all were freed.
  bool reap_hubs() {
    std::erase_if(hubs_off_, [](const auto& hub) { return hub->payloads().references() == 0; });
    return hubs_off_.empty();
  }

  // Null: its frames have no MAC.
  JobKeys* keys() { return keys_.has_value() ? &**keys_ : nullptr; }
  void set_keys(const control::Secret& of_job) { keys_.emplace(of_job); }

  unsigned window() const { return window_; }
  PayloadPackets& payloads() { return payloads_; }
  // Without those of its hubs.
  std::uint32_t reserved() const { return payloads_.reserved(); }
  // With those of its hubs.
  std::uint32_t reserved_by_all() const {
    std::uint32_t segments = reserved();
    if (hub_ != nullptr) segments += hub_->payloads().reserved();
    for (const auto& hub : hubs_off_) segments += hub->payloads().reserved();
    return segments;
  }
  unsigned references() const {
    unsigned references = payloads_.references();
    if (hub_ != nullptr) references += hub_->payloads().references();
    for (const auto& hub : hubs_off_) references += hub->payloads().references();
    return references;
  }
  // Engine's thread ---------------------------------------------------------
  enum class State : std::uint8_t { armed, running, held, halted };
  State state = State::halted;
  // Whether frames are sent and collectives begin and end.
  bool moves() const { return state == State::running || state == State::held; }
  std::uint16_t epoch = 0;
  // Collectives up to these cuts fail as they come.
  LaneCuts cuts{};
  RankOrder rank_order;
  // How many of its session's collectives this engine has looked at; fewer than are published while
  // there are some to begin.
  std::uint64_t seen = 0;
  // When something of it was last begun or taken, or it was last found in flight (job_watch.h).
  protocol::Nanoseconds worked_at = 0;
  // Whether the control thread has been told that the session violates its protocol.
  bool violation_told = false;
  // The same of trainers of this server that have pushed a hub's key differently.
  bool hub_disagreement_told = false;
  // The completions that the control thread knows of: while the job is held, it is told of more.
  std::uint64_t progress_told = 0;

 private:
  protocol::JobId id_;
  Session& session_;
  LanePlans lanes_;
  std::uint32_t weight_;
  bool leader_;
  unsigned window_;
  std::optional<UndumpedJobKeys> keys_;
  PayloadPackets payloads_;
  std::deque<PlanExecutor> executors_;
  std::unique_ptr<EngineHub> hub_;
  std::vector<std::unique_ptr<EngineHub>> hubs_off_;
  std::unique_ptr<Mailroom> mailroom_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_ENGINE_JOB_H_
