#include "dataplane/fabric/nic/ethdev_port.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <nlohmann/json.hpp>
#include <rte_ethdev.h>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

namespace {

// A frame then comes a fraction of the usual pause too late.
constexpr Nanoseconds kLooksPerPause = 4;
constexpr Nanoseconds kPausesSmoothed = 4;

}  // namespace

EthdevPort::Queue::Queue(const EthdevQueuePools& pools, std::uint16_t backlog,
                         const Pacer& its_pacer)
    : pacer(its_pacer),
      received(*pools.received),
      sent(pools.sent == nullptr ? nullptr : pools.sent->get()),
      most_segments(pools.device == nullptr ? 1 : 0),
      slots(backlog),
      mask(backlog - 1U) {}

void EthdevPort::Queue::note_busy(Nanoseconds now) {
  const Nanoseconds last = std::min(now - busy_at, kLooksPerPause * kLongestLook);
  pause += (last - pause) / kPausesSmoothed;
  busy_at = now;
}

EthdevPort::EthdevPort(const EthdevPortOptions& options, Clock& clock)
    : WakingPort(static_cast<std::uint16_t>(options.pools.size()), options.mtu),
      device_(options.device),
      name_(options.name),
      ends_on_interrupt_thread_(options.ends_on_interrupt_thread),
      tells_of_device_(options.tells_of_device),
      clock_(clock) {
  assert(std::has_single_bit(options.backlog));
  const Pacer pacer = pacer_of_queue(options.bits_per_second, options.pools.size(),
                                     mtu() + kEthernetBytes + kWireOverheadBytes, options.name);
  for (const EthdevQueuePools& pools : options.pools) {
    assert(holds_a_frame(*pools.received, mtu()));
    assert(pools.sent == nullptr || holds_a_frame(*pools.sent, mtu()));
    queues_.emplace_back(pools, options.backlog, pacer);
  }
  try {
    start(options);
  } catch (...) {
    end_device();
    throw;
  }
}

EthdevPort::~EthdevPort() {
  end_device();
  for (Queue& own : queues_) {
    for (; own.head != own.tail; ++own.head) {
      rte_pktmbuf_free(own.slots[own.head & own.mask]);
    }
  }
}

std::uint16_t EthdevPort::receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  if (own.waiting() != 0) push(queue, clock_.now());
  if (count == 0 || queue >= receive_queues_) return 0;
  own.fence.enter();
  const std::uint16_t arrived = running_.load(std::memory_order_acquire)
                                    ? rte_eth_rx_burst(device_, queue, packets, count)
                                    : std::uint16_t{0};
  own.fence.leave();
  if (arrived == 0) return 0;
  own.note_busy(clock_.now());
  std::uint16_t received = 0;
  std::uint64_t bytes = 0;
  for (std::uint16_t i = 0; i < arrived; ++i) {
    rte_mbuf* packet = whole(own, packets[i]);
    if (packet == nullptr) continue;
    bytes += packet->pkt_len;
    packets[received++] = packet;
  }
  if (received != 0) count_received(queue, received, bytes);
  return received;
}

// The frame in one packet of the queue's pool; null if that cannot be.
rte_mbuf* EthdevPort::whole(Queue& own, rte_mbuf* packet) const {
  if (packet->pkt_len > mtu() + kEthernetBytes) {
    own.numbers.rx_too_long.add(1);
    rte_pktmbuf_free(packet);
    return nullptr;
  }
  if (packet->nb_segs <= own.most_segments) return packet;
  rte_mbuf* copy = copy_frame(packet, own.received.get());
  if (copy == nullptr) own.numbers.rx_no_buffer.add(1);
  rte_pktmbuf_free(packet);
  return copy;
}

// The frame as the device takes it; null if that cannot be.
rte_mbuf* EthdevPort::sendable(Queue& own, rte_mbuf* packet) {
  if (own.sent == nullptr) return packet;
  rte_mbuf* copy = copy_frame(packet, own.sent);
  if (copy == nullptr) own.numbers.tx_no_buffer.add(1);
  rte_pktmbuf_free(packet);
  return copy;
}

std::uint16_t EthdevPort::transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  if (own.waiting() == 0) own.took_at = now;
  std::uint16_t accepted = 0;
  std::uint16_t put = 0;
  std::uint64_t bytes = 0;
  while (accepted < count && own.waiting() <= own.mask && own.pacer.may_pass(now)) {
    rte_mbuf* packet = packets[accepted++];
    if (packet->pkt_len < kEthernetBytes || packet->pkt_len > mtu() + kEthernetBytes) {
      own.numbers.tx_refused.add(1);
      rte_pktmbuf_free(packet);
      continue;
    }
    packet = sendable(own, packet);
    if (packet == nullptr) continue;
    own.pacer.pass(now, frame_bytes(packet) + kWireOverheadBytes);
    bytes += packet->pkt_len;
    ++put;
    own.slots[own.tail++ & own.mask] = packet;
  }
  if (put != 0) {
    count_sent(queue, put, bytes);
    own.note_busy(now);
  }
  if (own.waiting() != 0) push(queue, now);
  return accepted;
}

// Gives the device what waits.
void EthdevPort::push(std::uint16_t queue, Nanoseconds now) {
  Queue& own = queues_[queue];
  while (own.waiting() != 0) {
    const std::uint32_t at = own.head & own.mask;
    const auto run = static_cast<std::uint16_t>(std::min(own.waiting(), own.mask + 1 - at));
    own.fence.enter();
    const std::uint16_t taken = running_.load(std::memory_order_acquire)
                                    ? rte_eth_tx_burst(device_, queue, &own.slots[at], run)
                                    : std::uint16_t{0};
    own.fence.leave();
    own.head += taken;
    if (taken != 0) {
      own.took_at = now;
      own.stuck = false;
    }
    if (taken == run) continue;
    own.numbers.tx_postponed.add(1);
    if (taken == 0) give_up(own, now);
    return;
  }
}

// Drops what the device will not take in time, if so it is.
void EthdevPort::give_up(Queue& own, Nanoseconds now) const {
  own.stuck = own.stuck || now - own.took_at > kPatience || is_found_without_link(own, now);
  if (!own.stuck) return;
  own.numbers.tx_dropped.add(own.waiting());
  for (; own.head != own.tail; ++own.head) {
    rte_pktmbuf_free(own.slots[own.head & own.mask]);
  }
}

bool EthdevPort::is_found_without_link(Queue& own, Nanoseconds now) const {
  if (now - std::max(own.took_at, own.asked_at) < kLinkPatience) return false;
  own.asked_at = now;
  return !has_link();
}

std::uint16_t EthdevPort::transmit_room(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  const std::uint32_t room = own.mask + 1 - own.waiting();
  const std::uint32_t may_pass = own.pacer.limits() ? own.pacer.room(clock_.now()) : room;
  return static_cast<std::uint16_t>(std::min(room, may_pass));
}

Nanoseconds EthdevPort::next_event(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  const Nanoseconds quiet = std::max(now - own.busy_at, own.pause);
  const Nanoseconds look = std::clamp(quiet / kLooksPerPause, kShortestLook, kLongestLook);
  Nanoseconds next = own.armed || queue >= receive_queues_ ? kNever : now + look;
  if (own.waiting() != 0) next = now + std::min(look, kRetry);
  return std::min(next, own.pacer.next_room(now));
}

void EthdevPort::prepare_wait(std::uint16_t queue) {
  Queue& own = queues_[queue];
  own.armed = own.wake_descriptor >= 0 && rte_eth_dev_rx_intr_enable(device_, queue) == 0;
}

void EthdevPort::finish_wait(std::uint16_t queue) {
  Queue& own = queues_[queue];
  if (own.armed) rte_eth_dev_rx_intr_disable(device_, queue);
  own.armed = false;
}

bool EthdevPort::has_link() const {
  rte_eth_link link{};
  return rte_eth_link_get_nowait(device_, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

bool EthdevPort::restart() {
  running_.store(false, std::memory_order_relaxed);
  BurstFence::await_bursts();
  rte_eth_dev_stop(device_);
  const bool started = rte_eth_dev_start(device_) == 0;
  running_.store(started, std::memory_order_release);
  return started;
}

NicDropCounts nic_drops_of(const rte_eth_stats& stats) {
  return {.nic_rx_missed = stats.imissed,
          .nic_rx_errors = stats.ierrors,
          .nic_rx_no_buffer = stats.rx_nombuf,
          .nic_tx_errors = stats.oerrors};
}

std::optional<NicDropCounts> EthdevPort::nic_drop_counts() const {
  rte_eth_stats stats{};
  if (rte_eth_stats_get(device_, &stats) != 0) return std::nullopt;
  return nic_drops_of(stats);
}

void EthdevPort::add_to_status(nlohmann::ordered_json& entry) {
  entry.update(counters_json(drop_counts()));
  if (!tells_of_device_) return;
  entry["receive_interrupts"] = wake_descriptor(0) >= 0;
  entry["steering"] = name(steering_);
  // Some drivers do not tell.
  if (const auto drops = nic_drop_counts()) entry.update(counters_json(*drops));
}

EthdevPortCounts EthdevPort::drop_counts() const {
  EthdevPortCounts sum;
  for (const Queue& own : queues_) add_counters(sum, own.numbers);
  return sum;
}

EthdevPortCounts EthdevPort::drop_counts(std::uint16_t queue) const {
  EthdevPortCounts counts;
  add_counters(counts, queues_.at(queue).numbers);
  return counts;
}

}  // namespace gradcube::dataplane
