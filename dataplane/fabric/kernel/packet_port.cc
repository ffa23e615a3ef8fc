#include "dataplane/fabric/kernel/packet_port.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "control/base/errors.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

namespace {

std::string too_small(const NetworkInterface& interface, std::uint32_t mtu) {
  return fmt::format(
      "network interface {0} carries IP packets of at most {1} bytes (its MTU), and the cluster's "
      "MTU is {2}: `ip link set dev {0} mtu {2}`, or an MTU of {1} for the cluster",
      interface.name, interface.mtu, mtu);
}

std::uint32_t checked_mtu(const PacketPortOptions& options, const NetworkInterface& interface) {
  const std::uint32_t mtu = options.mtu == 0 ? interface.mtu : options.mtu;
  if (mtu <= interface.mtu) return mtu;
  throw control::SetupError(too_small(interface, mtu));
}

}  // namespace

PacketPort::Queue::Queue(const NetworkInterface& interface, const PacketRingSizes& sizes,
                         PacketPool& its_pool, const Pacer& its_pacer)
    : socket(interface, sizes),
      arrived(socket.receive_slots()),
      outgoing(socket.transmit_slots(), socket.descriptor()),
      pacer(its_pacer),
      pool(its_pool),
      buffer_bytes(frame_room(its_pool.get())) {}

PacketPort::PacketPort(const PacketPortOptions& options, Clock& clock)
    : PacketPort(options, find_network_interface(options.interface), clock) {}

PacketPort::PacketPort(const PacketPortOptions& options, const NetworkInterface& interface,
                       Clock& clock)
    : WakingPort(static_cast<std::uint16_t>(options.pools.size()), checked_mtu(options, interface)),
      name_(interface.name),
      mac_(options.mac == decltype(options.mac){} ? interface.mac : options.mac),
      clock_(clock) {
  const Pacer pacer = pacer_of_queue(options.bits_per_second, options.pools.size(),
                                     mtu() + kEthernetBytes + kWireOverheadBytes,
                                     "network interface " + interface.name);
  for (PacketPool* pool : options.pools) {
    assert(holds_a_frame(*pool, mtu()));
    queues_.emplace_back(interface,
                         PacketRingSizes{.mtu = mtu(),
                                         .receive_slots = options.receive_depth,
                                         .transmit_slots = options.transmit_depth},
                         *pool, pacer);
  }
  claim_.emplace(name_);
  listen();
}

void PacketPort::listen() {
  const auto queues = static_cast<std::uint16_t>(queues_.size());
  for (std::uint16_t queue = 0; queue < queues; ++queue) {
    queues_[queue].socket.listen(mac_, {queue, queues});
  }
}

void PacketPort::look() {
  claim_->hang_up();
  const auto is_there = [](const Queue& queue) { return queue.socket.is_on_interface(); };
  if (std::all_of(queues_.begin(), queues_.end(), is_there) && problem_.empty()) return;
  try {
    const NetworkInterface interface = find_network_interface(name_);
    if (interface.mtu < mtu()) throw control::SetupError(too_small(interface, mtu()));
    for (Queue& queue : queues_) queue.socket.move_to(interface);
    listen();
    problem_.clear();
  } catch (const control::SetupError& error) {
    problem_ = fmt::format("its network interface {} was deleted, and {}", name_, error.what());
  }
}

std::uint16_t PacketPort::receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  if (own.outgoing.unsent() != 0) {
    const Nanoseconds now = clock_.now();
    if (now >= own.retry_at) kick(own, now);
  }
  std::uint16_t received = 0;
  std::uint64_t bytes = 0;
  while (received < count) {
    rte_mbuf* packet = take_frame(own);
    if (packet == nullptr) break;
    bytes += packet->pkt_len;
    packets[received++] = packet;
  }
  if (received != 0) count_received(queue, received, bytes);
  return received;
}

// The next frame that fits; null if there is none, or no mbuf for it.
rte_mbuf* PacketPort::take_frame(Queue& own) {
  own.lacks_buffer = false;
  // A flood of long frames must not keep the thread: a look at every slot is enough.
  for (std::size_t looks = 0; looks < own.arrived.slots(); ++looks) {
    const ReceiveRing::Frame frame = own.arrived.front();
    if (frame.data == nullptr) return nullptr;
    if (frame.bytes == frame.sent_bytes && frame.bytes <= own.buffer_bytes) {
      rte_mbuf* packet = own.pool.allocate();
      if (packet == nullptr) {
        own.lacks_buffer = true;
        own.numbers.rx_no_buffer.add(1);
        return nullptr;
      }
      std::memcpy(rte_pktmbuf_mtod(packet, void*), frame.data, frame.bytes);
      packet->data_len = static_cast<std::uint16_t>(frame.bytes);
      packet->pkt_len = frame.bytes;
      own.arrived.pop();
      return packet;
    }
    own.numbers.rx_too_long.add(1);
    own.arrived.pop();
  }
  return nullptr;
}

std::uint16_t PacketPort::transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  const std::uint32_t room = own.outgoing.room();
  std::uint16_t accepted = 0;
  std::uint16_t put = 0;
  std::uint64_t bytes = 0;
  while (accepted < count && put < room && own.pacer.may_pass(now)) {
    rte_mbuf* packet = packets[accepted++];
    if (packet->pkt_len < kEthernetBytes || packet->pkt_len > mtu() + kEthernetBytes) {
      own.numbers.tx_refused.add(1);
    } else {
      own.outgoing.put(packet);
      own.pacer.pass(now, frame_bytes(packet) + kWireOverheadBytes);
      bytes += packet->pkt_len;
      ++put;
    }
    rte_pktmbuf_free(packet);
  }
  if (put != 0) count_sent(queue, put, bytes);
  if (own.outgoing.unsent() != 0) kick(own, now);
  return accepted;
}

void PacketPort::kick(Queue& own, Nanoseconds now) {
  const TransmitRing::Kick kick = own.outgoing.kick();
  if (kick.refused != 0) own.numbers.tx_refused.add(kick.refused);
  const bool full = kick.error == 0 || kick.error == EAGAIN || kick.error == ENOBUFS;
  if (full) own.retry_after = kRetry;
  if (own.outgoing.unsent() == 0) return;
  if (now >= own.retry_at) {
    own.retry_at = now + own.retry_after;
    if (!full) own.retry_after = std::min(2 * own.retry_after, kLongestRetry);
  }
  (full ? own.numbers.tx_postponed : own.numbers.tx_failed).add(1);
}

std::uint16_t PacketPort::transmit_room(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  const std::uint32_t paced = own.pacer.room(clock_.now());
  return static_cast<std::uint16_t>(
      std::min({own.outgoing.room(), paced, std::uint32_t{UINT16_MAX}}));
}

Nanoseconds PacketPort::next_event(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  Nanoseconds next = own.pacer.next_room(now);
  if (own.outgoing.unsent() != 0) next = std::min(next, own.retry_at);
  const bool sending = own.outgoing.room() == 0 && own.outgoing.unsent() == 0;
  if (own.lacks_buffer || sending) next = std::min(next, now + kRetry);
  return next;
}

void PacketPort::add_to_status(nlohmann::ordered_json& entry) {
  PacketPortCounts sum;
  for (std::uint16_t queue = 0; queue < queues(); ++queue) add_counters(sum, drop_counts(queue));
  entry.update(counters_json(sum));
}

PacketPortCounts PacketPort::drop_counts(std::uint16_t queue) {
  Queue& own = queues_.at(queue);
  own.numbers.rx_ring_full.add(own.socket.take_drops());
  PacketPortCounts counts;
  add_counters(counts, own.numbers);
  return counts;
}

}  // namespace gradcube::dataplane
