#include "dataplane/fabric/emulated/egress_queue.h"

#include <bit>
#include <cstddef>
#include <memory>
#include <utility>

#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {
constexpr unsigned kEgressBurst = 32;

std::uint64_t or_without_limit(std::uint64_t bytes) { return bytes == 0 ? UINT64_MAX : bytes; }
}  // namespace

EgressQueue::EgressQueue(RingPort* port, const LinkProfile& profile, std::uint32_t capacity,
                         rte_mempool* clones, SwitchPortCounters& counters)
    : port_(port),
      counters_(&counters),
      clones_(clones),
      wire_(profile.bits_per_second),
      delay_(profile.delay),
      queue_limit_(or_without_limit(profile.queue_bytes)),
      mark_limit_(or_without_limit(profile.mark_bytes)),
      waits_for_server_(!profile.limited()),
      mask_(std::bit_ceil(capacity) - 1),
      entries_(std::make_unique_for_overwrite<Entry[]>(std::size_t{mask_} + 1)) {}

EgressQueue::EgressQueue(EgressQueue&& other) noexcept
    : port_(other.port_),
      counters_(other.counters_),
      clones_(other.clones_),
      wire_(other.wire_),
      delay_(other.delay_),
      queue_limit_(other.queue_limit_),
      mark_limit_(other.mark_limit_),
      waits_for_server_(other.waits_for_server_),
      queued_bytes_(other.queued_bytes_),
      head_(std::exchange(other.head_, 0)),
      departed_(std::exchange(other.departed_, 0)),
      tail_(std::exchange(other.tail_, 0)),
      mask_(other.mask_),
      entries_(std::move(other.entries_)) {}

EgressQueue::~EgressQueue() {
  while (head_ != tail_) {
    rte_pktmbuf_free(entries_[head_ & mask_].packet);
    ++head_;
  }
}

void EgressQueue::forget_departed(std::int64_t now) {
  while (departed_ != tail_ && entries_[departed_ & mask_].departure <= now) {
    queued_bytes_ -= entries_[departed_ & mask_].bytes;
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
  push({packet, wire_.carry(arrival, bytes + kWireOverheadBytes), bytes, queue, from});
}

void EgressQueue::pop(unsigned count) {
  for (unsigned i = 0; i < count; ++i) {
    if (departed_ == head_) {
      queued_bytes_ -= entries_[head_ & mask_].bytes;
      ++departed_;
    }
    ++head_;
  }
}

EgressQueue::Passed EgressQueue::take() {
  const Entry& entry = entries_[head_ & mask_];
  const Passed passed{entry.packet, entry.departure + delay_, entry.queue, entry.from};
  counters_->forwarded.add(1);
  counters_->bytes.add(passed.packet->pkt_len);
  pop(1);
  if (head_ == tail_) head_ = departed_ = tail_ = 0;
  return passed;
}

unsigned EgressQueue::deliver(std::int64_t now) {
  unsigned moved = 0;
  while (head_ != tail_) {
    rte_mbuf* burst[kEgressBurst];
    std::uint64_t bytes[kEgressBurst + 1];  // bytes[i]: of the first i frames
    bytes[0] = 0;
    const std::uint16_t queue = entries_[head_ & mask_].queue;
    std::uint16_t count = 0;
    for (std::uint32_t at = head_; at != tail_ && count < kEgressBurst; ++at) {
      const Entry& entry = entries_[at & mask_];
      if (entry.queue != queue || entry.departure + delay_ > now) break;
      burst[count] = entry.packet;
      bytes[count + 1] = bytes[count] + entry.packet->pkt_len;
      ++count;
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
  // An empty queue starts again at its beginning: light traffic touches the same few cache lines.
  if (head_ == tail_) head_ = departed_ = tail_ = 0;
  return moved;
}

}  // namespace gradcube::dataplane
