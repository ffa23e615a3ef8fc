#include "dataplane/fabric/emulated/egress_queue.h"

#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {
constexpr unsigned kEgressBurst = 32;

std::uint64_t or_without_limit(std::uint64_t bytes) { return bytes == 0 ? UINT64_MAX : bytes; }
}  // namespace

EgressQueue::EgressQueue(RingPort* port, const LinkProfile& profile, std::uint32_t capacity,
                         std::uint16_t first_express, rte_mempool* clones,
                         SwitchPortCounters& counters)
    : port_(port),
      counters_(&counters),
      clones_(clones),
      wire_(profile.bits_per_second),
      delay_(profile.delay),
      queue_limit_(or_without_limit(profile.queue_bytes)),
      mark_limit_(or_without_limit(profile.mark_bytes)),
      waits_for_server_(!profile.limited()),
      first_express_(first_express),
      // Over an unlimited link nothing waits for the wire.
      plain_(profile.limited() ? capacity : 1),
      express_(profile.limited() ? capacity : 1),
      carried_(capacity) {}

EgressQueue::~EgressQueue() {
  for (const FrameLine* line : {&plain_, &express_, &carried_}) {
    for (std::uint32_t place = 0; place < line->size(); ++place) {
      rte_pktmbuf_free((*line)[place].packet);
    }
  }
}

void EgressQueue::carry_one() {
  const bool express = turn_.is_express(!express_.empty(), !plain_.empty());
  FrameLine& line = express ? express_ : plain_;
  FrameInLine frame = line[0];
  line.pop(1);
  turn_.count(express, frame.bytes);
  frame.time = wire_.carry(frame.time, frame.bytes + kWireOverheadBytes);
  carried_.push(frame);
}

// Which frame is next is decided when the wire is free for it: by then all are here that can be.
void EgressQueue::use_wire(std::int64_t now) {
  while (wire_.busy_for(now) == 0 && !(plain_.empty() && express_.empty())) carry_one();
}

void EgressQueue::forget_departed(std::int64_t now) {
  while (departed_ != carried_.size() && carried_[departed_].time <= now) {
    queued_bytes_ -= carried_[departed_].bytes;
    ++departed_;
  }
}

rte_mbuf* EgressQueue::marked(rte_mbuf* packet) {
  if (!understands_marks(packet)) return packet;
  if (!may_be_written(packet)) {
    rte_mbuf* copy = copy_frame(packet, clones_);
    if (copy == nullptr) return packet;
    rte_pktmbuf_free(packet);
    packet = copy;
  }
  mark_congestion(packet);
  counters_->marked.add(1);
  return packet;
}

void EgressQueue::admit(rte_mbuf* packet, std::uint16_t queue, std::int64_t arrival,
                        std::uint16_t from) {
  use_wire(arrival);
  forget_departed(arrival);
  const std::uint32_t bytes = frame_bytes(packet);
  if (queued_bytes_ + bytes > queue_limit_ || room() == 0) {
    counters_->dropped_queue.add(1);
    rte_pktmbuf_free(packet);
    return;
  }
  queued_bytes_ += bytes;
  counters_->queue_peak_bytes.raise_to(queued_bytes_);
  if (queued_bytes_ > mark_limit_) packet = marked(packet);
  (queue >= first_express_ ? express_ : plain_).push({packet, arrival, bytes, queue, from});
  use_wire(arrival);
}

void EgressQueue::pop(std::uint32_t count) {
  for (; departed_ < count; ++departed_) queued_bytes_ -= carried_[departed_].bytes;
  departed_ -= count;
  carried_.pop(count);
}

FrameInLine EgressQueue::take() {
  FrameInLine frame = carried_[0];
  const std::int64_t departure = frame.time;
  frame.time += delay_;
  counters_->forwarded.add(1);
  counters_->bytes.add(frame.packet->pkt_len);
  pop(1);
  use_wire(departure);
  return frame;
}

unsigned EgressQueue::deliver(std::int64_t now) {
  use_wire(now);
  unsigned moved = 0;
  while (!carried_.empty()) {
    rte_mbuf* burst[kEgressBurst];
    std::uint64_t bytes[kEgressBurst + 1];  // bytes[i]: of the first i frames
    bytes[0] = 0;
    const std::uint16_t queue = carried_[0].queue;
    std::uint16_t count = 0;
    for (; count < carried_.size() && count < kEgressBurst; ++count) {
      const FrameInLine& frame = carried_[count];
      if (frame.queue != queue || frame.time + delay_ > now) break;
      burst[count] = frame.packet;
      bytes[count + 1] = bytes[count] + frame.packet->pkt_len;
    }
    if (count == 0) break;
    const std::uint16_t given = port_->switch_transmit(queue, burst, count);
    counters_->forwarded.add(given);
    counters_->bytes.add(bytes[given]);
    moved += given;
    if (given < count && waits_for_server_) {
      pop(given);
      return moved;
    }
    pop(count);
    if (given < count) {
      counters_->rx_missed.add(count - given);
      rte_pktmbuf_free_bulk(burst + given, count - given);
    }
  }
  return moved;
}

}  // namespace gradcube::dataplane
