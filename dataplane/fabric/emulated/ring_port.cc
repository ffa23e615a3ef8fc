#include "dataplane/fabric/emulated/ring_port.h"

#include <algorithm>

namespace gradcube::dataplane {

RingPort::RingPort(const RingPortOptions& options) : Port(options.queues, options.mtu) {
  queue_pairs_.reserve(options.queues);
  for (std::uint16_t queue = 0; queue < options.queues; ++queue) {
    queue_pairs_.push_back(QueuePair{PacketRing(options.uplink_depth, options.socket),
                                     PacketRing(options.downlink_depth, options.socket)});
  }
}

std::uint16_t RingPort::receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  const std::uint16_t received = queue_pairs_[queue].downlink.take(packets, count);
  if (received != 0) count_received(queue, received, total_bytes(packets, received));
  return received;
}

std::uint16_t RingPort::transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  QueuePair& pair = queue_pairs_[queue];
  // Count before the hand-over: afterwards the switch may have freed the packets.
  const auto accepted =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(count, pair.uplink.room()));
  if (accepted == 0) return 0;
  count_sent(queue, accepted, total_bytes(packets, accepted));
  pair.uplink.put(packets, accepted);
  if (pair.switch_bell != nullptr) pair.switch_bell->ring();
  return accepted;
}

std::uint16_t RingPort::transmit_room(std::uint16_t queue) const {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(queue_pairs_[queue].uplink.room(), UINT16_MAX));
}

void RingPort::set_doorbells(std::uint16_t queue, Doorbell* at_switch, Doorbell* at_server) {
  queue_pairs_.at(queue).switch_bell = at_switch;
  queue_pairs_.at(queue).server_bell = at_server;
}

}  // namespace gradcube::dataplane
