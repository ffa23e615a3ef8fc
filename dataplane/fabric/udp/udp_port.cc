#include "dataplane/fabric/udp/udp_port.h"

#include <algorithm>
#include <cassert>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "control/base/errors.h"
#include "control/settings/host_list.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/host/counters_json.h"

namespace gradcube::dataplane {

namespace {

constexpr unsigned kErrorBits = 32;

// Of the longest frame.
unsigned most_fragments(const UdpPortOptions& options) {
  const std::uint32_t each = most_of_body(options.datagram_mtu, options.at.is_v6);
  return (options.mtu + kEthernetBytes - kBodyAt + each - 1) / each;
}

// Of a frame with so long a body, in so many datagrams.
std::uint32_t wire_bytes(std::uint32_t body, unsigned fragments, bool is_v6) {
  return body + fragments * (kEthernetBytes + datagram_headers(is_v6) + kWireOverheadBytes);
}

std::uint16_t frames_per_iteration(const UdpPortOptions& options) {
  return static_cast<std::uint16_t>(std::clamp<unsigned>(kMostDatagrams / most_fragments(options),
                                                         Port::kBurst, Port::kMostPerIteration));
}

bool is_for_all(const rte_mbuf* frame) {
  return (*rte_pktmbuf_mtod(frame, const std::uint8_t*) & 1) != 0;
}

}  // namespace

UdpPort::Queue::Queue(const UdpPortOptions& options, PacketPool& pool, const UdpPeers& peers,
                      const Pacer& its_pacer)
    : socket(options.at,
             options.pools.size() > 1 ? UdpSocket::Address::shared : UdpSocket::Address::alone,
             options.bits_per_second / options.pools.size()),
      incoming(socket.descriptor(), pool, peers, options.mtu + kEthernetBytes),
      outgoing(socket.descriptor(), peers, most_of_body(options.datagram_mtu, options.at.is_v6),
               most_fragments(options)),
      pacer(its_pacer) {}

UdpPort::UdpPort(const UdpPortOptions& options, Clock& clock)
    : WakingPort(static_cast<std::uint16_t>(options.pools.size()), options.mtu,
                 frames_per_iteration(options)),
      at_(options.at),
      datagram_mtu_(options.datagram_mtu),
      peers_(options.link, options.peers),
      clock_(clock) {
  const Pacer pacer = pacer_of_queue(
      options.bits_per_second, options.pools.size(),
      wire_bytes(mtu() + kEthernetBytes - kBodyAt, most_fragments(options), at_.is_v6),
      "the port at " + control::host_text(at_));
  if (most_fragments(options) > kMostFragments) {
    throw std::invalid_argument("a UDP port's frames are too long for its datagrams");
  }
  // Sockets that share their address do so with all that want to, of this user.
  if (options.pools.size() > 1) {
    const UdpSocket alone(at_, UdpSocket::Address::alone);
  }
  for (PacketPool* pool : options.pools) {
    assert(holds_a_frame(*pool, mtu()));
    queues_.emplace_back(options, *pool, peers_, pacer);
  }
  if (queues() > 1) queues_.front().socket.spread_over(queues());
  check_ways();
}

void UdpPort::check_ways() const {
  for (std::uint16_t peer = 0; peer < peers_.size(); ++peer) {
    const std::uint32_t carried = path_mtu(at_, peers_.address(peer));
    if (carried < datagram_mtu_) throw control::SetupError(too_long(peer, carried));
  }
}

std::string UdpPort::too_long(std::uint16_t peer, std::uint32_t carried) const {
  return fmt::format(
      "the way from {} to {} carries IP packets of at most {} bytes, and those of the cluster have "
      "up to {}: expected --mtu {}, or as much in [link] of the cluster file of all hosts, or a "
      "larger MTU of their interfaces",
      control::host_text(at_), control::host_text(peers_.address(peer)), carried, datagram_mtu_,
      carried);
}

std::uint16_t UdpPort::receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  if (!own.outgoing.empty()) {
    const Nanoseconds now = clock_.now();
    if (now >= own.retry_at) send(own, queue, now);
  }
  const DatagramBurst::Outcome came = own.incoming.receive(packets, count);
  if (came.received != 0) count_received(queue, came.received, came.bytes);
  if (came.strangers != 0) own.numbers.rx_strangers.add(came.strangers);
  if (came.refused != 0) own.numbers.rx_refused.add(came.refused);
  if (came.unfinished != 0) own.numbers.rx_unfinished.add(came.unfinished);
  if (own.incoming.lacks_packets()) own.numbers.rx_no_buffer.add(1);
  return came.received;
}

std::uint16_t UdpPort::transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  if (!own.outgoing.empty()) return 0;
  std::uint16_t accepted = 0;
  while (accepted < count && own.outgoing.room() != 0 && own.pacer.may_pass(now)) {
    rte_mbuf* packet = packets[accepted++];
    const bool is_sound =
        DatagramTrains::takes(packet) && packet->pkt_len <= mtu() + kEthernetBytes;
    const std::uint16_t peer =
        is_sound ? peers_.with_mac(destination_mac(packet)) : UdpPeers::kNone;
    if (peer == UdpPeers::kNone) {
      if (!is_sound || !is_for_all(packet)) own.numbers.tx_refused.add(1);
      rte_pktmbuf_free(packet);
      continue;
    }
    own.pacer.pass(
        now, wire_bytes(packet->pkt_len - kBodyAt, own.outgoing.fragments_of(packet), at_.is_v6));
    own.outgoing.add(packet, peer);
  }
  if (!own.outgoing.empty()) send(own, queue, now);
  return accepted;
}

void UdpPort::send(Queue& own, std::uint16_t queue, Nanoseconds now) {
  const DatagramTrains::Outcome done = own.outgoing.send();
  if (done.sent != 0) count_sent(queue, done.sent, done.bytes);
  if (done.error != 0) {
    own.numbers.tx_too_long.add(done.too_long);
    own.numbers.tx_failed.add(done.failed);
    own.failure.store(
        std::uint64_t{done.peer} << kErrorBits | static_cast<std::uint32_t>(done.error),
        std::memory_order_relaxed);
  }
  if (own.outgoing.empty()) return;
  own.retry_at = now + kRetry;
  own.numbers.tx_postponed.add(1);
}

std::uint16_t UdpPort::transmit_room(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  if (!own.outgoing.empty()) return 0;
  const std::uint32_t paced = own.pacer.room(clock_.now());
  return static_cast<std::uint16_t>(std::min<std::uint32_t>(own.outgoing.room(), paced));
}

Nanoseconds UdpPort::next_event(std::uint16_t queue) const {
  const Queue& own = queues_[queue];
  const Nanoseconds now = clock_.now();
  Nanoseconds next = own.pacer.next_room(now);
  if (!own.outgoing.empty()) next = std::min(next, own.retry_at);
  if (own.incoming.left_some()) next = std::min(next, now + kRetry);
  return next;
}

void UdpPort::look() {
  problem_.clear();
  for (Queue& own : queues_) {
    const std::uint64_t failure = own.failure.exchange(0, std::memory_order_relaxed);
    if (failure != 0 && problem_.empty()) problem_ = failure_text(failure);
  }
}

std::string UdpPort::failure_text(std::uint64_t failure) const {
  const auto peer = static_cast<std::uint16_t>(failure >> kErrorBits);
  const auto error = static_cast<int>(failure & UINT32_MAX);
  if (error == EMSGSIZE) {
    try {
      return too_long(peer, path_mtu(at_, peers_.address(peer)));
    } catch (const control::SetupError& refused) {
      return refused.what();
    }
  }
  return fmt::format("nothing can be sent from {} to {}: {}", control::host_text(at_),
                     control::host_text(peers_.address(peer)), std::strerror(error));
}

void UdpPort::add_to_status(nlohmann::ordered_json& entry) {
  entry["at"] = control::ip_text(at_);
  entry["udp_port"] = at_.udp_port;
  UdpPortCounts sum;
  for (std::uint16_t queue = 0; queue < queues(); ++queue) add_counters(sum, drop_counts(queue));
  entry.update(counters_json(sum));
}

UdpPortCounts UdpPort::drop_counts(std::uint16_t queue) {
  Queue& own = queues_.at(queue);
  own.numbers.rx_buffer_full.add(own.socket.take_drops());
  UdpPortCounts counts;
  add_counters(counts, own.numbers);
  return counts;
}

}  // namespace gradcube::dataplane
