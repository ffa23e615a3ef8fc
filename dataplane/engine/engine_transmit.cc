// The engine's sending half: which segments go out next, and how they become packets.

#include <algorithm>

#include "dataplane/engine/engine.h"
#include "dataplane/engine/flow_users.h"
#include "protocol/crc.h"

namespace gradcube::dataplane {

using Visit = FlowRotation::Visit;

namespace {

// Whether zeros may stand for what its trainers have submitted (guarded_memory.h).
bool has_faulted(EngineJob* job) {
  for (unsigned local = 0; local < job->session().trainers(); ++local) {
    if (job->session().region(local).faulted()) return true;
  }
  return false;
}

}  // namespace

unsigned Engine::transmit(PortQueue& out, unsigned most_plain) {
  out.plain.begin(*out.port, most_plain);
  if (out.has_lanes) out.express.begin(*out.port, out.port->per_iteration());
  if (out.plain.room + out.express.room == 0) return 0;
  const auto may_send_zeros = [this] {
    return GuardedMemory::pending() && std::any_of(attached_.begin(), attached_.end(), has_faulted);
  };
  if (may_send_zeros()) {
    retries_ = true;
    return 0;
  }
  switch (sent_check_) {
    case FrameCheck::none:
      fill<FrameCheck::none>(out);
      break;
    case FrameCheck::crc:
      fill<FrameCheck::crc>(out);
      break;
    case FrameCheck::mac:
      fill<FrameCheck::mac>(out);
      break;
  }
  if (out.plain.filled + out.express.filled == 0) return 0;
  // Where reading a message's bytes has just found a fault, all of this is lost on its way.
  const bool lost = may_send_zeros();
  return hand_to_port(out, out.express, lost) + hand_to_port(out, out.plain, lost);
}

unsigned Engine::hand_to_port(PortQueue& out, PortQueue::Burst& burst, bool lost) {
  if (burst.filled == 0) return 0;
  const unsigned sent = lost ? 0
                             : out.port->transmit(burst.queue, burst.packets.data(),
                                                  static_cast<std::uint16_t>(burst.filled));
  for (unsigned i = sent; i < burst.filled; ++i) rte_pktmbuf_free(burst.packets[i]);
  return burst.filled;
}

namespace {

template <typename Send>
Visit unless_it_rests(Flow& flow, Send&& send) {
  return flow.job->moves() ? send(flow) : Visit::later;
}

}  // namespace

template <FrameCheck kSent>
void Engine::fill(PortQueue& out) {
  send_greetings(out);
  out.answers.serve(out.plain.left() + out.express.left(), [&](Flow& flow) {
    return unless_it_rests(flow, [this](Flow& owing) { return send_owed<kSent>(owing); });
  });
  const unsigned sent_short = out.segments.serve_short(
      out.lane(true).left(),
      [&](Flow& flow, std::uint32_t& bytes) { return send_own<kSent>(out, flow, bytes); });
  if (sent_short != 0 && out.hurries && settings_.urgency != nullptr) {
    settings_.urgency->record(now_);
  }
  if (!out.plain.is_full()) fill_plain<kSent>(out);
}

// With the server's own and with relayed frames in turn.
template <FrameCheck kSent>
void Engine::fill_plain(PortQueue& out) {
  const auto serve_own = [&](unsigned limit) {
    const unsigned again = out.resends.serve(limit, [&](Flow& flow) {
      return unless_it_rests(flow, [this](Flow& losing) { return send_again<kSent>(losing); });
    });
    return again + out.segments.serve(limit - again, [&](Flow& flow, std::uint32_t& bytes) {
      return send_own<kSent>(out, flow, bytes);
    });
  };
  while (!out.plain.is_full() && !out.relayed.empty()) {
    if (!out.relayed.has_turn() && serve_own(1) != 0) continue;
    if (!out.relayed.has_turn()) out.relayed.settle();
    out.plain.put(out.relayed.take());
  }
  if (out.relayed.empty()) {
    serve_own(out.plain.left());
    out.relayed.settle();
  }
}

template <FrameCheck kSent>
Visit Engine::send_own(PortQueue& out, Flow& flow, std::uint32_t& bytes) {
  return unless_it_rests(flow, [&](Flow& ready) {
    const Visit found = send_new<kSent>(ready, bytes);
    out.relayed.count_own(bytes);
    return found;
  });
}

// A probe or an acknowledgement that is due and could not travel with a segment.
template <FrameCheck kSent>
Visit Engine::send_owed(Flow& flow) {
  const bool probe = flow.send.probe_owed();
  if (!probe && !flow.receive.acknowledgement_owed(now_)) {
    arm_timer(flow);
    const bool waits = flow.receive.acknowledgement_deadline() != protocol::kNever;
    return waits ? Visit::later : Visit::nothing;
  }
  return send_without_segment<kSent>(flow, probe) ? Visit::served : Visit::later;
}

std::uint32_t Engine::frame_bytes(const Flow& flow, const OutgoingSegment& segment) const {
  return static_cast<std::uint32_t>(protocol::header_bytes(
             protocol::FrameType::segment, flow.route.size(), settings_.keys != nullptr)) +
         segment.bytes;
}

template <FrameCheck kSent>
Visit Engine::send_again(Flow& flow) {
  const std::optional<std::uint64_t> lost = flow.send.next_lost();
  if (!lost) return Visit::nothing;
  PortQueue::Burst& burst = flow.out->lane(flow.may_overtake());
  if (burst.is_full()) return Visit::later;
  const OutgoingSegment segment =
      ask_user(flow, [&](const auto& user) { return user.sent_segment(flow, *lost); });
  if (!send_segment<kSent>(flow, burst, *lost, segment, 0)) return Visit::later;
  flow.send.record_resend(*lost, now_);
  flow.out->relayed.count_own(frame_bytes(flow, segment));
  ++counters_.resent;
  flow.neighbour->resent.add(1);
  arm_timer(flow);
  return Visit::served;
}

template <FrameCheck kSent>
Visit Engine::send_new(Flow& flow, std::uint32_t& bytes) {
  const bool granted = flow.send.may_send();
  if (!granted && !flow.send.may_send_unasked(0) && !flow.send.must_ask()) return Visit::nothing;
  const std::optional<OutgoingSegment> segment =
      ask_user(flow, [&flow](auto& user) { return user.next_segment(flow); });
  if (!segment) return Visit::nothing;
  const std::uint32_t frame = frame_bytes(flow, *segment);
  if (!granted && !flow.unasked->may_send(flow, frame)) {
    return flow.send.must_ask() ? ask_for_credit<kSent>(flow, bytes) : Visit::nothing;
  }
  const bool express = flow.is_express();
  PortQueue::Burst& burst = flow.out->lane(express);
  if (burst.is_full()) return Visit::later;
  const std::uint8_t backlog =
      ask_user(flow, [&flow](auto& user) { return user.ready_backlog(flow); });
  if (!send_segment<kSent>(flow, burst, flow.send.next(), *segment, backlog)) return Visit::later;
  if (!express) flow.plain_end = flow.send.next() + 1;
  if (granted) {
    flow.send.record_send(now_);
  } else {
    flow.send.record_unasked(frame, now_);
    flow.unasked->record(flow);
  }
  bytes = frame;
  ++counters_.segments_sent;
  // Else the timer waits for the first one on its way already.
  if (flow.send.in_flight() == 1 || flow.timer.deadline() == protocol::kNever) arm_timer(flow);
  return Visit::served;
}

// A segment is ready and its receiver does not know.
template <FrameCheck kSent>
Visit Engine::ask_for_credit(Flow& flow, std::uint32_t& bytes) {
  if (!send_without_segment<kSent>(flow, false)) return Visit::later;
  bytes = static_cast<std::uint32_t>(protocol::header_bytes(
      protocol::FrameType::acknowledgement, flow.route.size(), settings_.keys != nullptr));
  ++counters_.credit_requests;
  return Visit::served;
}

namespace {

// A segment that was sent before comes with no backlog.
protocol::TransportHeader transport(Flow& flow, std::uint64_t sequence, std::uint8_t backlog,
                                    Nanoseconds now) {
  flow.send.record_ask(sequence + backlog, now);
  protocol::TransportHeader header;
  header.sequence = static_cast<std::uint32_t>(sequence);
  header.acknowledged = flow.receive.acknowledged();
  header.selective = flow.receive.selective();
  header.credit = flow.receive.credit();
  header.held = flow.receive.held();
  header.backlog = backlog;
  header.sent_again = sequence < flow.send.next();
  return header;
}

}  // namespace

// A segment leaves without a copy: an mbuf with the headers, chained to one that points into the
// trainer's buffer; one without bytes too, so that it counts.
template <FrameCheck kSent>
bool Engine::send_segment(Flow& flow, PortQueue::Burst& burst, std::uint64_t sequence,
                          const OutgoingSegment& outgoing, std::uint8_t backlog) {
  rte_mbuf* parts[kPacketsPerSegment];
  if (!flow.payloads->may_point() || !pools_.segments.allocate(parts, kPacketsPerSegment)) {
    ++counters_.no_packet_memory;
    retries_ = true;
    return false;
  }
  const protocol::SegmentHeader segment{outgoing.signature,
                                        static_cast<std::uint16_t>(outgoing.bytes)};
  rte_mbuf* head = parts[0];
  const std::size_t header_bytes =
      flow.frame->write(header_room(head), transport(flow, sequence, backlog, now_), &segment);
  flow.payloads->point_at(parts[1], outgoing.payload, static_cast<std::uint16_t>(outgoing.bytes));
  head->next = parts[1];
  head->nb_segs = kPacketsPerSegment;
  put<kSent>(flow, burst, head, header_bytes, {outgoing.payload, outgoing.bytes}, sequence);
  return true;
}

// An acknowledgement, or a probe, which is one that asks for an answer.
template <FrameCheck kSent>
bool Engine::send_without_segment(Flow& flow, bool probe) {
  PortQueue::Burst& burst = flow.out->lane(flow.may_overtake());
  if (burst.is_full()) return false;
  rte_mbuf* head = pools_.answers.allocate();
  if (head == nullptr) {
    ++counters_.no_packet_memory;
    retries_ = true;
    return false;
  }
  const std::uint8_t backlog = ask_user(flow, [&flow](auto& user) { return user.backlog(flow); });
  const protocol::TransportHeader header = transport(flow, flow.send.next(), backlog, now_);
  const std::size_t header_bytes = probe ? flow.frame->write_probe(header_room(head), header)
                                         : flow.frame->write(header_room(head), header, nullptr);
  if (probe) flow.send.record_probe();
  arm_timer(flow);
  ++counters_.acknowledgements_sent;
  put<kSent>(flow, burst, head, header_bytes, {}, flow.send.next());
  return true;
}

// Puts a packet into the burst: `head` holds the headers, and the payload is chained to it.
template <FrameCheck kSent>
void Engine::put(Flow& flow, PortQueue::Burst& burst, rte_mbuf* head, std::size_t header_bytes,
                 std::span<const std::uint8_t> payload, std::uint64_t sequence) {
  const std::span<std::uint8_t> headers{rte_pktmbuf_mtod(head, std::uint8_t*), header_bytes};
  if constexpr (kSent == FrameCheck::crc) protocol::seal(headers, payload);
  if constexpr (kSent == FrameCheck::mac) {
    flow.key->seal(headers, payload, flow.context_of_sent(sequence));
  }
  head->data_len = static_cast<std::uint16_t>(header_bytes);
  head->pkt_len = static_cast<std::uint32_t>(header_bytes + payload.size());
  flow.receive.acknowledged_now();
  flow.use.bytes += head->pkt_len;
  burst.put(head);
}

void Engine::arm_timer(Flow& flow) {
  const Nanoseconds deadline = flow.send.deadline();
  if (deadline == protocol::kNever) {
    timers_.cancel(flow.timer);
  } else if (deadline < flow.timer.deadline()) {
    timers_.schedule(flow.timer, deadline);
  }
}

}  // namespace gradcube::dataplane
