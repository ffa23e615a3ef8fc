// One flow: the reliable exchange of one stage of one step of one thread of a lane with one peer,
// both directions; or the same of an executor of the job's hub (hub_executor.h); or that of a job's
// mail with one peer over one path (mail_channel.h). The peer is a neighbour, or a server that
// relays lead to.
//
// What it sends and receives are streams of segments (control/plan/thread_schedule.h), numbered by
// position: a segment keeps its sequence when it is sent again. Neither half stores a payload: the
// sender finds it in the trainer's buffer, and the receiver adds it where it arrives.
//
// Owned by its user; touched only by the engine's thread.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "bcube_forwarding/address.h"
#include "bcube_forwarding/route.h"
#include "dataplane/links/neighbour_counters.h"
#include "protocol/credit.h"
#include "protocol/mac.h"
#include "protocol/receive_window.h"
#include "protocol/send_window.h"
#include "protocol/time.h"
#include "protocol/timer_wheel.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

class EngineJob;
class FlowRotation;
class HubExecutor;
class MailChannel;
class PayloadPackets;
class PlanExecutor;
class PortQueue;
class UnaskedRoom;

struct Flow;

// A collective of so many bytes at most is short: it does not wait behind long ones, neither for
// its job's turn (flow_scheduler.h) nor in a queue of a port that has lanes
// (dataplane/fabric/port.h). About what takes no longer than its latencies: 0.5 ms at 1 Gbit/s.
inline constexpr std::uint64_t kShortCollective = 64 * 1024;

// What all flows of an engine have in common.
struct FlowSettings {
  protocol::RecoverySettings recovery;
  protocol::AcknowledgementSettings acknowledgement;
};

// A flow's place in its engine's timer wheel.
struct FlowTimer : protocol::TimerEntry {
  Flow* flow = nullptr;
};

// What a flow makes of its path, and what was chosen for it by what paths have left
// (path_chooser.h). A route without hops: none.
struct PathUse {
  std::uint64_t bytes = 0;  // that have left, all frames
  // At this time so many had; and so much was sent on the way there.
  protocol::Nanoseconds measured_at = 0;
  std::uint64_t bytes_then = 0;
  std::uint64_t bits_per_second = 0;
  bcube::Route chosen;
  bcube::Route favoured;  // was better when the paths were probed last
};

// Which flow of its thread it is, and where it goes.
struct FlowKey {
  protocol::Stage stage{};
  // The aggregation step, in the broadcast stage too; of mail the number of the path.
  std::uint8_t step = 0;
  std::uint8_t offset = 0;  // the peer's digit is ours plus this, modulo the radix
  bcube::ServerId peer = 0;
  bcube::Route planned;  // to the peer, as long as all links work
  // Ours: that the peer's frames come in through, as its planned route to us ends. Credit
  // counts for it, also while they take another route.
  std::uint8_t port_in = 0;

  bool is_neighbours() const { return planned.size() == 1; }
};

struct Flow : FlowKey {
  // window: the most segments that may be here and not consumed.
  Flow(const FlowKey& key, EngineJob& its_job, PlanExecutor& its_user, const FlowSettings& settings,
       unsigned window)
      : Flow(key, its_job, settings, window) {
    user = &its_user;
  }
  Flow(const FlowKey& key, EngineJob& its_job, MailChannel& its_mail, const FlowSettings& settings,
       unsigned window)
      : Flow(key, its_job, settings, window) {
    mail = &its_mail;
  }
  Flow(const FlowKey& key, EngineJob& its_job, HubExecutor& its_hub, const FlowSettings& settings,
       unsigned window)
      : Flow(key, its_job, settings, window) {
    hub = &its_hub;
  }

  // What the MAC of a frame covers beside its bytes.
  protocol::MacContext context_of_sent(std::uint64_t sequence) const {
    return {sequence, receive.cumulative(), hub_number};
  }
  protocol::MacContext context_of(const protocol::TransportHeader& received) const {
    return {receive.expand(received.sequence), send.expand(received.acknowledged), hub_number};
  }

  bcube::Route route;  // to the peer, that its frames take now
  PathUse use;

  protocol::SendWindow send;
  protocol::ReceiveWindow receive;
  std::optional<protocol::FrameTemplate> frame;  // made when the job is armed: it holds the epoch

  EngineJob* job;
  // What the segments are for, one of the three: flow_user.h.
  PlanExecutor* user = nullptr;
  MailChannel* mail = nullptr;
  HubExecutor* hub = nullptr;

  // Whether the next segment takes the port's express lane: that of a short collective does, as
  // long as no segment of the flow is on its way in the plain lane, which it could overtake.
  bool is_express() const { return sends_short && may_overtake(); }
  // The same of what carries no segment, or one that is sent again.
  bool may_overtake() const { return plain_end <= send.cumulative(); }

  std::uint64_t sending = 1;   // the collective that holds send.next(), or the next one to begin
  std::uint64_t granting = 1;  // the same of receive.limit()
  bool sends_short = false;    // that collective is short
  // Up to here segments were ready when its user last looked; 0: since then it has been woken.
  std::uint64_t ready_end = 0;
  std::uint64_t plain_end = 0;  // behind the last segment that took the plain lane
  FlowTimer timer;

  // While an engine has it (port_queue.h).
  NeighbourCounters* neighbour = nullptr;   // those of its peer, over the planned link
  std::uint8_t digit_in = 0;                // of the hop that the peer's frames take over that link
  UnaskedRoom* unasked = nullptr;           // that on the way to its peer
  PortQueue* out = nullptr;                 // that its frames leave through
  std::size_t place_out = 0;                // in the sets of all flows that leave there
  PayloadPackets* payloads = nullptr;       // that its segments count among
  const protocol::FrameKey* key = nullptr;  // of its frames; null: they have none
  std::uint32_t hub_number = 0;             // of its hub; 0: it is of none
  struct Scheduled {
    FlowRotation* rotation = nullptr;
    std::size_t in_rotation = 0;
    std::size_t share = 0;
  } scheduled;              // by FlowScheduler
  PortQueue* in = nullptr;  // that grants its credit
  std::size_t place_in = 0;
  protocol::CreditPool::Handle credit = 0;

 private:
  Flow(const FlowKey& key, EngineJob& its_job, const FlowSettings& settings, unsigned window)
      : FlowKey(key),
        route(planned),
        send(settings.recovery, window),
        receive(window, 0, settings.acknowledgement),
        job(&its_job) {
    timer.flow = this;
  }
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_FLOW_H_
