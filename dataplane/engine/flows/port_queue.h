// One port as one engine uses it: its queue's burst, its flows, and what they wait for.
//
// A flow stands in three sets of the port that its frames leave through, and in one of the port
// that those of its peer come in through: for a neighbour the same port. In each it sleeps unless
// there is something to do for it:
//
//   answers   it may owe an acknowledgement or a probe
//   resends   it may have lost a segment
//   segments  a new segment may be ready, within the window
//   consumed  of the incoming port: more of what it receives has been used: credit may be granted
//
// Frames that this server relays wait in `relayed`, and share the port with what its flows send by
// bytes (relay_queue.h). Greetings that neighbours are to get go before all else: few and short,
// and without them a link that is busy would seem to be down.
//
// Waking a flow for nothing costs a look; not waking it would stall it. So what may change the
// answer to "is there something to do?" wakes: an arrival, a timer, credit, a reduce, a result, a
// new collective.
//
// Lanes (dataplane/fabric/port.h). Where the port has an express queue, frames of short collectives
// and what their flows answer are a burst of their own. Where it has none, both are one.
//
// Jobs share the port by turns (flow_scheduler.h). With a rate a turn is one segment: the port is
// what they share, and nobody is to wait for it longer than he must. Without, they share a core and
// its caches, and what a job has sent is best received and added while it still lies there: a turn
// is 256 KiB. With turns of one segment, 64 jobs took more than twice as long.
//
// Owned and used by one engine. add_...() and make_room() allocate: they belong to set-up, and to
// the moment when a link goes down or comes up.
#ifndef GRADCUBE_DATAPLANE_ENGINE_FLOWS_PORT_QUEUE_H_
#define GRADCUBE_DATAPLANE_ENGINE_FLOWS_PORT_QUEUE_H_

#include <algorithm>
#include <array>
#include <rte_mbuf.h>
#include <vector>

#include "dataplane/engine/flows/flow.h"
#include "dataplane/engine/flows/flow_rotation.h"
#include "dataplane/engine/flows/flow_scheduler.h"
#include "dataplane/engine/flows/relay_queue.h"
#include "dataplane/fabric/port.h"
#include "protocol/credit.h"
#include "protocol/job_id.h"
#include "protocol/time.h"

namespace gradcube::dataplane {

class PortQueue {
 public:
  static constexpr std::uint32_t kTurnWithoutARate = 256 * 1024;  // bytes

  // Frames that leave together by one of the port's queues, as many as there is room for.
  struct Burst {
    explicit Burst(std::uint16_t its_queue) : queue(its_queue) {}
    void begin(const Port& port, unsigned most) {
      filled = 0;
      room = std::min<unsigned>(port.transmit_room(queue), most);
    }
    bool is_full() const { return filled == room; }
    unsigned left() const { return room - filled; }
    void put(rte_mbuf* packet) { packets[filled++] = packet; }

    std::uint16_t queue;
    unsigned room = 0;
    unsigned filled = 0;
    std::array<rte_mbuf*, Port::kMostPerIteration> packets{};
  };

  // engine: the number of this engine's queue of the port, and among those that share its credit.
  PortQueue(unsigned its_number, Port& its_port, protocol::PortCredit& port_credit, unsigned engine)
      : number(its_number),
        port(&its_port),
        segments(port_credit.unlimited() ? kTurnWithoutARate : port_credit.segment_bytes()),
        credit(port_credit, engine),
        plain(static_cast<std::uint16_t>(engine)),
        express(its_port.express_queue(plain.queue)),
        has_lanes(express.queue != plain.queue),
        hurries(has_lanes && port_credit.unlimited()) {}
  PortQueue(const PortQueue&) = delete;
  PortQueue& operator=(const PortQueue&) = delete;

  // For one more flow: then add_outgoing() needs no memory, also after a remove_outgoing().
  void make_room(const EngineJob& job, const FlowScheduler::Rank& rank);
  // A flow whose frames leave through this port, and one whose peer's come in through it. Where
  // there is no memory the flow is not here.
  void add_outgoing(const EngineJob& job, const FlowScheduler::Rank& rank, Flow& flow);
  void add_incoming(protocol::JobId job, const FlowScheduler::Rank& rank, Flow& flow);
  void remove_all_of(const EngineJob& job);
  // A flow whose frames are to leave through another port, or that ends; and one that ends.
  void remove_outgoing(Flow& flow);
  void remove_incoming(Flow& flow);

  // Grants what has become free, to flows of any job. ask(flow, call): calls call(user) with the
  // flow's FlowUser.
  template <typename Ask>
  void grant_credit(protocol::Nanoseconds now, const Ask& ask) {
    consumed.for_each_awake([&](Flow& flow) {
      const std::uint64_t before = flow.receive.consumed();
      ask(flow, [&](const auto& user) {
        credit.set_consumed(flow.credit, user.consumed(flow), now);
        if (flow.receive.consumed() != before && user.sender_waits(flow, before)) {
          flow.receive.acknowledge_at_once();
        }
      });
      wake_answer(flow);
      return FlowRotation::Visit::nothing;
    });
    distribute_credit(now);
  }

  // ::wake_answer().
  static void wake_answer(Flow& flow) {
    if (flow.out != nullptr) flow.out->answers.wake(flow.place_out);
  }

  // Whether a flow of a job that moves(flow) has to answer, or will have to; and when the first has
  // to that may_answer(flow), kNever if none. Both take time in the number of awake flows.
  template <typename Moves>
  bool any_answers(const Moves& moves) {
    bool any = false;
    answers.for_each_awake([&](const Flow& flow) {
      any = any || moves(flow);
      return FlowRotation::Visit::later;
    });
    return any;
  }
  template <typename MayAnswer>
  protocol::Nanoseconds next_answer(const MayAnswer& may_answer) {
    protocol::Nanoseconds next = protocol::kNever;
    answers.for_each_awake([&](const Flow& flow) {
      if (!may_answer(flow)) return FlowRotation::Visit::later;
      next = std::min(next, flow.receive.acknowledgement_deadline());
      // Its timer is set when it is visited next.
      if (flow.send.deadline() < flow.timer.deadline()) next = std::min(next, flow.send.deadline());
      return FlowRotation::Visit::later;
    });
    return next;
  }

  unsigned number;  // among the server's ports
  Port* port;
  FlowRotation answers;
  FlowRotation resends;
  FlowRotation consumed;
  FlowScheduler segments;
  protocol::CreditPool credit;
  RelayQueue relayed;
  Burst plain;
  Burst express;
  bool has_lanes;
  bool hurries;  // what goes by the express queue waits for nothing but pollers
  Burst& lane(bool is_express) { return is_express && has_lanes ? express : plain; }

 private:
  void give_back_credit(Flow& flow);
  void distribute_credit(protocol::Nanoseconds now);

  std::vector<Flow*> by_credit_;  // by handle in `credit`; null where there is none
};

// The flow may owe an acknowledgement or a probe. These do nothing for a flow that no engine has.
inline void wake_answer(Flow& flow) { PortQueue::wake_answer(flow); }
inline void wake_resend(Flow& flow) {
  if (flow.out != nullptr) flow.out->resends.wake(flow.place_out);
}
inline void wake_consumed(Flow& flow) {
  if (flow.in != nullptr) flow.in->consumed.wake(flow.place_in);
}
inline void wake_segment(Flow& flow) {
  flow.ready_end = 0;
  if (flow.out != nullptr) flow.out->segments.wake(flow);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_FLOWS_PORT_QUEUE_H_
