// The engine's receiving half: from a burst of packets to sums and results in the trainers' memory.

#include <algorithm>
#include <rte_prefetch.h>

#include "dataplane/engine/engine.h"
#include "dataplane/engine/flow_users.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/attempt.h"
#include "dataplane/links/way_back.h"
#include "protocol/crc.h"

namespace gradcube::dataplane {

using protocol::FrameError;
using protocol::ParsedFrame;

namespace {

// The frame's payload, which lies behind the headers in the first mbuf or alone in the second; null
// if it is scattered.
const std::uint8_t* payload_of(const rte_mbuf* packet, const ParsedFrame& frame) {
  const std::uint8_t* head = rte_pktmbuf_mtod(packet, const std::uint8_t*);
  if (packet->data_len >= frame.header_bytes + frame.payload_bytes)
    return head + frame.header_bytes;
  const rte_mbuf* second = packet->next;
  if (packet->data_len == frame.header_bytes && second != nullptr &&
      second->data_len >= frame.payload_bytes) {
    return rte_pktmbuf_mtod(second, const std::uint8_t*);
  }
  return nullptr;
}

void count_received(Flow& flow, const protocol::RoutingHeader& routing) {
  flow.neighbour->received.add(1);
  const bool direct = routing.hop_count == 1 && routing.hops[0].digit == flow.digit_in;
  flow.neighbour->direct.add(direct ? 1 : 0);
}

}  // namespace

unsigned Engine::receive(PortQueue& in, std::uint16_t queue) {
  unsigned received = 0;
  unsigned count = Port::kBurst;
  while (count == Port::kBurst && received < in.port->per_iteration()) {
    rte_mbuf* packets[Port::kBurst];
    count = in.port->receive(queue, packets, Port::kBurst);
    port_in_ = in.number;
    if (count != 0) receive_any(packets, count);
    received += count;
  }
  return received;
}

// What siblings have received for this engine.
unsigned Engine::receive_handed() {
  unsigned received = 0;
  for (unsigned sibling = 0; sibling < settings_.hand_over->engines(); ++sibling) {
    if (sibling == settings_.queue) continue;
    rte_mbuf* packets[HandOver::kBurst];
    const unsigned count =
        settings_.hand_over->take(sibling, settings_.queue, packets, HandOver::kBurst);
    // What came in through one port goes on as one burst.
    unsigned end = 0;
    for (unsigned begin = 0; begin < count; begin = end) {
      port_in_ = packets[begin]->port;
      while (end < count && packets[end]->port == port_in_) ++end;
      receive_any(packets + begin, end - begin);
    }
    received += count;
  }
  return received;
}

void Engine::receive_any(rte_mbuf** packets, unsigned count) {
  switch (demanded_check_) {
    case FrameCheck::none:
      return receive_checked<FrameCheck::none>(packets, count);
    case FrameCheck::crc:
      return receive_checked<FrameCheck::crc>(packets, count);
    case FrameCheck::mac:
      return receive_checked<FrameCheck::mac>(packets, count);
  }
}

template <FrameCheck kDemanded>
void Engine::receive_checked(rte_mbuf** packets, unsigned count) {
  if (settings_.hand_over == nullptr) return receive_burst<kDemanded, false>(packets, count);
  receive_burst<kDemanded, true>(packets, count);
  const HandOver::Flushed flushed = settings_.hand_over->flush(settings_.queue);
  counters_.handed_over += flushed.passed;
  counters_.drop(DropReason::hand_over_full, flushed.dropped);
}

template <FrameCheck kDemanded, bool kHandsOver>
void Engine::receive_burst(rte_mbuf** packets, unsigned count) {
  // Headers begin in one cache line and end in the next (protocol/wire.h). Without the second a
  // relay passed on two thirds of the segments.
  constexpr unsigned kAhead = 4;
  ParsedFrame frame;
  unsigned done = 0;
  for (unsigned i = 0; i < count; ++i) {
    if (i + kAhead < count) {
      rte_prefetch0(rte_pktmbuf_mtod(packets[i + kAhead], void*));
      rte_prefetch0(rte_pktmbuf_mtod_offset(packets[i + kAhead], void*, RTE_CACHE_LINE_SIZE));
    }
    if (!receive_packet<kDemanded, kHandsOver>(packets[i], frame)) packets[done++] = packets[i];
  }
  rte_pktmbuf_free_bulk(packets, done);
}

// True if the packet is held; false: the caller frees it. `frame` is room for what it says.
template <FrameCheck kDemanded, bool kHandsOver>
bool Engine::receive_packet(rte_mbuf* packet, ParsedFrame& frame) {
  const std::span<const std::uint8_t> head{rte_pktmbuf_mtod(packet, const std::uint8_t*),
                                           packet->data_len};
  const FrameError error = protocol::parse_frame(head, packet->pkt_len, frame);
  if (error != FrameError::none) {
    counters_.drop(error);
    return false;
  }
  // Before the CRC or MAC and the job: these are its destination's business.
  if (!protocol::destination_reached(frame.routing)) return relay(packet, frame);
  if constexpr (kHandsOver) {
    if (hand_over(packet)) return true;
  }
  if (frame.type > protocol::FrameType::probe) {
    return receive_unsegmented(packet, frame, head);
  }
  const std::uint8_t* payload = payload_of(packet, frame);
  if (payload == nullptr) {
    counters_.drop(DropReason::scattered_payload);
    return false;
  }
  Flow* flow = checked_flow<kDemanded>(frame, head.first(frame.header_bytes),
                                       {payload, frame.payload_bytes});
  if (flow == nullptr) return false;
  if (frame.congestion_marked) ++counters_.congestion_marks;

  const protocol::TransportHeader& transport = frame.transport;
  const protocol::AckResult acknowledged = flow->send.on_acknowledgement(
      transport.acknowledged, transport.selective, transport.credit, transport.held, now_);
  if (acknowledged.status == protocol::AckStatus::refused) {
    counters_.drop(DropReason::bad_acknowledgement);
    return false;
  }
  flow->neighbour->acknowledged.add(acknowledged.delivered);
  if (flow->mail != nullptr && acknowledged.delivered != 0) flow->mail->on_acknowledged(*flow);
  if (acknowledged.lost != 0) wake_resend(*flow);
  wake_segment(*flow);
  if (frame.type == protocol::FrameType::probe) flow->receive.on_probe();
  const protocol::SegmentHeader& segment = frame.segment;
  const Contribution contribution = {packet, payload, 0, segment.length, segment};
  const std::uint64_t fresh = counters_.segments_received;
  const bool held = frame.is_segment && ask_user(*flow, [&](auto& user) {
                      return receive_segment(*flow, user, frame, contribution);
                    });
  // What says nothing new shows no life: somebody may have recorded it.
  const bool is_news = acknowledged.delivered != 0 || counters_.segments_received != fresh;
  if (is_news) count_received(*flow, frame.routing);
  flow->in->credit.on_frame(flow->credit,
                            flow->receive.expand(transport.sequence) + transport.backlog,
                            ask_user(*flow, [flow](auto& user) { return user.granting(*flow); }));
  wake_answer(*flow);  // its timer is set then, too
  return held;
}

// True if the frame has asked for the queue of a sibling, to which it goes. What else it says is
// the sibling's to check: a frame that lies about its queue is dropped there, and goes nowhere
// else.
bool Engine::hand_over(rte_mbuf* packet) {
  const unsigned engine = thread_of(packet) % settings_.engines;
  if (engine == settings_.queue) return false;
  packet->port = static_cast<std::uint16_t>(port_in_);
  settings_.hand_over->put(settings_.queue, engine, packet);
  return true;
}

// What belongs to no flow. True if the packet waits in the inbox.
bool Engine::receive_unsegmented(rte_mbuf* packet, const ParsedFrame& frame,
                                 std::span<const std::uint8_t> head) {
  const std::uint8_t* padding = payload_of(packet, frame);
  if (frame.routing.destination != settings_.server && !protocol::is_announcement(frame.routing)) {
    counters_.drop(DropReason::not_for_this_server);
  } else if (frame.type == protocol::FrameType::path_probe) {
    receive_path_probe(packet, frame);
  } else if (frame.type != protocol::FrameType::message && padding == nullptr) {
    counters_.drop(DropReason::scattered_payload);
  } else if (frame.type != protocol::FrameType::message) {
    receive_link_frame(frame, head.first(frame.header_bytes), {padding, frame.payload_bytes});
  } else if (settings_.inbox == nullptr) {
    counters_.drop(FrameError::unsupported_type);
  } else if (server_keys() != nullptr && packet->nb_segs == 1 &&
             !server_keys()->is_right(head.first(frame.header_bytes),
                                      head.subspan(frame.header_bytes, frame.payload_bytes))) {
    counters_.drop(FrameError::bad_mac);  // before it takes a place from one that is right
  } else if (settings_.inbox->put(packet)) {
    return true;
  } else {
    counters_.drop(DropReason::inbox_full);
  }
  return false;
}

// Sends a frame on that has hops to go: as its sender wrote them, whatever the servers between
// know. True if it waits for room in the port of its next hop.
bool Engine::relay(rte_mbuf* packet, const ParsedFrame& frame) {
  const protocol::RoutingHeader& routing = frame.routing;
  const protocol::Hop hop = routing.hops[routing.hop_index + 1U];
  const bcube::Neighbour* next = neighbours_.find(hop.level, hop.digit);
  if (next == nullptr) {
    counters_.drop(DropReason::no_such_hop);
    return false;
  }
  // It is sent on all the same: a link that loses much may only seem to be down.
  if (!links_.up({hop.level, hop.digit})) tell_path_failure(packet, routing);
  if (frame.type == protocol::FrameType::path_probe &&
      !pass_path_probe(packet, frame, next->port)) {
    return false;
  }
  if (!ports_[next->port]->relayed.put(packet)) {
    counters_.drop(DropReason::relay_full);
    return false;
  }
  const std::span<std::uint8_t> head{rte_pktmbuf_mtod(packet, std::uint8_t*), packet->data_len};
  protocol::advance_hop(head);
  protocol::readdress(head, link_addresses(*next));
  ++counters_.relayed;
  return true;
}

// True if the flow's user keeps the packet.
template <typename User>
bool Engine::receive_segment(Flow& flow, User& user, const ParsedFrame& frame,
                             const Contribution& contribution) {
  const std::uint64_t sequence = flow.receive.expand(frame.transport.sequence);
  const protocol::Arrival arrival = flow.receive.look(sequence);
  if (arrival != protocol::Arrival::fresh) {
    flow.receive.acknowledge_at_once();
    if (arrival == protocol::Arrival::duplicate) {
      ++counters_.duplicates;
    } else {
      counters_.drop(DropReason::outside_window);
    }
    return false;
  }
  const typename User::Acceptance accepted = user.accept(flow, sequence, contribution);
  if (accepted.refused.has_value()) {
    counters_.drop(*accepted.refused);
    return false;
  }
  flow.receive.record(sequence, now_);
  ++counters_.segments_received;
  flow.in->credit.on_segment(frame.congestion_marked, frame.transport.sent_again,
                             contribution.bytes);
  return user.take(flow, sequence, contribution, accepted);
}

// The flow that a frame belongs to, if it is right; else counts why not. A MAC is the job's, so the
// flow is found first; but the first mail of a server must not make a channel before it is right.
template <FrameCheck kDemanded>
Flow* Engine::checked_flow(const ParsedFrame& frame, std::span<const std::uint8_t> headers,
                           std::span<const std::uint8_t> payload) {
  const auto is_wrong = [&](FrameError error) -> Flow* {
    counters_.drop(error);
    return nullptr;
  };
  if constexpr (kDemanded == FrameCheck::crc) {
    if (!protocol::crc_is_right(headers, payload)) return is_wrong(FrameError::bad_crc);
  }
  if constexpr (kDemanded == FrameCheck::mac) {
    if (EngineJob* job = job_of_first_mail(frame);
        job != nullptr && !job->keys()->of_mail().is_right(headers, payload)) {
      return is_wrong(FrameError::bad_mac);
    }
  }
  Flow* flow = find_flow(frame);
  if constexpr (kDemanded == FrameCheck::mac) {
    if (flow != nullptr &&
        !flow->key->is_right(headers, payload, flow->context_of(frame.transport))) {
      return is_wrong(FrameError::bad_mac);
    }
  }
  return flow;
}

// Null if it is no mail, or not the first.
EngineJob* Engine::job_of_first_mail(const ParsedFrame& frame) {
  if (frame.transport.thread != protocol::kMailThread ||
      flows_.find(flow_key(frame.transport, frame.routing.source)) != nullptr) {
    return nullptr;
  }
  return find_job(frame.transport.job);
}

// If everything that the frame says about itself holds; else counts why not.
Flow* Engine::find_flow(const ParsedFrame& frame) {
  const auto refuse = [this](DropReason reason) -> Flow* {
    counters_.drop(reason);
    return nullptr;
  };
  if (frame.routing.destination != settings_.server) {
    return refuse(DropReason::not_for_this_server);
  }
  Flow* flow = flows_.find(flow_key(frame.transport, frame.routing.source));
  if (flow == nullptr) {
    Flow* made = nullptr;
    if (!attempt([&] { made = find_mail_flow(frame); })) return refuse(DropReason::no_memory);
    if (made == nullptr) return refuse(reason_for_no_flow(frame.transport));
    flow = made;
  }
  if (frame.transport.epoch != epoch_of(*flow)) return refuse(DropReason::stale_epoch);
  if (flow->job->state == EngineJob::State::halted) return refuse(DropReason::job_not_running);
  return flow;
}

// The first mail of a server of the job makes the channel to it: allocates.
Flow* Engine::find_mail_flow(const ParsedFrame& frame) {
  if (frame.transport.thread != protocol::kMailThread) return nullptr;
  EngineJob* job = find_job(frame.transport.job);
  if (job == nullptr || job->mailroom() == nullptr || frame.routing.source == settings_.server ||
      job->mailroom()->channel_to(frame.routing.source) == nullptr) {
    return nullptr;
  }
  return flows_.find(flow_key(frame.transport, frame.routing.source));
}

DropReason Engine::reason_for_no_flow(const protocol::TransportHeader& transport) const {
  EngineJob* job = find_job(transport.job);
  if (job == nullptr) return DropReason::unknown_job;
  if (transport.epoch != job->epoch) return DropReason::stale_epoch;
  if (transport.thread >= protocol::kFirstHubThread && transport.thread != protocol::kMailThread &&
      (job->hub() == nullptr ||
       job->hub()->hub().number() % protocol::kMaxLanes != transport.lane)) {
    return DropReason::no_hub;
  }
  const bool runs_here = std::any_of(
      job->executors().begin(), job->executors().end(), [&](const PlanExecutor& executor) {
        return executor.lane() == transport.lane && executor.thread() == transport.thread;
      });
  return runs_here ? DropReason::not_a_neighbour : DropReason::foreign_thread;
}

}  // namespace gradcube::dataplane
