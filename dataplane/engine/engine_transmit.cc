// The engine's sending half: which segments go out next, and how they become packets.

#include <algorithm>

#include "dataplane/engine/engine.h"
#include "protocol/crc.h"

namespace gradcube::dataplane {


namespace {

// Serves the flows of a turn one segment at a time, beginning where it ended last, until `room` is
// used up or none has anything to send. try_send returns whether it sent one. With one flow per
// neighbour, begun at the next digit, this is the rotation that keeps each switch port to one
// sender at a time.
template <typename FlowSet, typename TrySend>
unsigned serve(FlowSet& turn, unsigned room, TrySend&& try_send) {
  const std::size_t flows = turn.flows.size();
  unsigned sent = 0;
  for (std::size_t refused = 0; refused < flows && sent < room;) {
    Flow& flow = *turn.flows[turn.next];
    turn.next = turn.next + 1 == flows ? 0 : turn.next + 1;
    if (try_send(flow)) {
      ++sent;
      refused = 0;
    } else {
      ++refused;
    }
  }
  return sent;
}

}  // namespace

unsigned Engine::transmit(unsigned level) {
  PortQueue& out = ports_[level];
  const unsigned room = std::min<unsigned>(out.port->transmit_room(settings_.queue), kBurst);
  if (room == 0) return 0;
  out.filled = 0;
  if (checksum_sent_) {
    fill<true>(level, room);
  } else {
    fill<false>(level, room);
  }
  if (out.filled == 0) return 0;
  const unsigned sent =
      out.port->transmit(settings_.queue, out.burst.data(), static_cast<std::uint16_t>(out.filled));
  for (unsigned i = sent; i < out.filled; ++i) rte_pktmbuf_free(out.burst[i]);
  return out.filled;
}

template <bool kChecksum>
void Engine::fill(unsigned level, unsigned room) {
  PortQueue& out = ports_[level];
  const auto running = [](const Flow& flow) {
    return flow.job->state == EngineJob::State::running;
  };
  // What is owed is overdue: no segment came along that could have carried it.
  room -= serve(out.all, room, [&](Flow& flow) {
    if (!running(flow)) return false;
    const bool probe = flow.send.probe_owed();
    if (!probe && !flow.receive.acknowledgement_owed(now_)) return false;
    return send_without_segment<kChecksum>(flow, probe);
  });
  room -= serve(out.all, room, [&](Flow& flow) {
    if (!running(flow)) return false;
    const std::optional<std::uint64_t> lost = flow.send.next_lost();
    if (!lost || !send_segment<kChecksum>(flow, *lost)) return false;
    flow.send.record_resend(*lost, now_);
    ++counters_.resent;
    arm_timer(flow);
    return true;
  });
  for (RoundRobin& turn : out.classes) {
    if (room == 0) return;
    room -= serve(turn, room, [&](Flow& flow) {
      if (!flow.send.may_send() || !running(flow) || !flow.executor->next_is_ready(flow))
        return false;
      if (!send_segment<kChecksum>(flow, flow.send.next())) return false;
      flow.send.record_send(now_);
      ++counters_.segments_sent;
      arm_timer(flow);
      return true;
    });
  }
}

protocol::TransportHeader Engine::transport(Flow& flow, std::uint64_t sequence) {
  protocol::TransportHeader header;
  header.sequence = static_cast<std::uint32_t>(sequence);
  header.acknowledged = flow.receive.acknowledged();
  header.selective = flow.receive.selective();
  header.credit = flow.receive.credit();
  header.backlog = flow.executor->backlog(flow);
  return header;
}

// A segment leaves without a copy: an mbuf with the headers, chained to one that points into the
// trainer's buffer.
template <bool kChecksum>
bool Engine::send_segment(Flow& flow, std::uint64_t sequence) {
  rte_mbuf* parts[2];
  if (rte_pktmbuf_alloc_bulk(packets_, parts, 2) != 0) {
    ++counters_.no_packet_memory;
    return false;
  }
  const OutgoingSegment outgoing = flow.executor->outgoing(flow, sequence);
  protocol::SegmentHeader segment;
  segment.collective = static_cast<std::uint32_t>(outgoing.collective);
  segment.step = flow.step;
  segment.type_and_operation = outgoing.signature.type_and_operation;
  segment.length = static_cast<std::uint16_t>(outgoing.bytes);
  segment.position = outgoing.position;
  segment.count = outgoing.signature.count;

  rte_mbuf* head = parts[0];
  const std::span<std::uint8_t> headers{rte_pktmbuf_mtod(head, std::uint8_t*),
                                        protocol::kSegmentHeaderBytes};
  flow.frame->write(headers, transport(flow, sequence), &segment);
  if constexpr (kChecksum) protocol::seal(headers, {outgoing.payload, outgoing.bytes});
  head->data_len = static_cast<std::uint16_t>(headers.size());
  head->pkt_len = head->data_len + outgoing.bytes;
  if (outgoing.bytes != 0) {
    flow.job->point_at(parts[1], outgoing.payload, static_cast<std::uint16_t>(outgoing.bytes));
    head->next = parts[1];
    head->nb_segs = 2;
  } else {
    rte_pktmbuf_free(parts[1]);
  }
  flow.receive.acknowledged_now();
  PortQueue& out = ports_[flow.level];
  out.burst[out.filled++] = head;
  return true;
}

// An acknowledgement, or a probe, which is one that asks for an answer.
template <bool kChecksum>
bool Engine::send_without_segment(Flow& flow, bool probe) {
  rte_mbuf* head = rte_pktmbuf_alloc(packets_);
  if (head == nullptr) {
    ++counters_.no_packet_memory;
    return false;
  }
  const std::span<std::uint8_t> headers{rte_pktmbuf_mtod(head, std::uint8_t*),
                                        protocol::kAcknowledgementHeaderBytes};
  const protocol::TransportHeader header = transport(flow, flow.send.next());
  if (probe) {
    flow.frame->write_probe(headers, header);
    flow.send.record_probe();
    arm_timer(flow);
  } else {
    flow.frame->write(headers, header, nullptr);
  }
  if constexpr (kChecksum) protocol::seal(headers, {});
  head->data_len = static_cast<std::uint16_t>(headers.size());
  head->pkt_len = head->data_len;
  flow.receive.acknowledged_now();
  ++counters_.acknowledgements_sent;
  PortQueue& out = ports_[flow.level];
  out.burst[out.filled++] = head;
  return true;
}

void Engine::arm_timer(Flow& flow) {
  const std::int64_t deadline = flow.send.deadline();
  if (deadline == protocol::kNever) {
    timers_.cancel(flow.timer);
  } else if (deadline < flow.timer.deadline()) {
    timers_.schedule(flow.timer, deadline);
  }
}

// Grants what this turn's arrivals and reduces have made room for.
void Engine::update_credit() {
  for (PortQueue& out : ports_) {
    for (Flow* flow : out.all.flows) {
      out.credit->set_consumed(flow->credit, flow->executor->consumed(*flow));
    }
    out.credit->distribute();
  }
}

}  // namespace gradcube::dataplane
