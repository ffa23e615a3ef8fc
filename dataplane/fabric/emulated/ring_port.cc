#include "dataplane/fabric/emulated/ring_port.h"

#include <algorithm>

namespace gradcube::dataplane {

namespace {
// Short frames, of which few wait.
constexpr std::uint32_t kExpressUplink = 64;
}  // namespace

RingPort::RingPort(const RingPortOptions& options) : Port(options.queues, options.mtu) {
  queue_pairs_.reserve(std::size_t{2} * options.queues);
  for (const std::uint32_t uplink_depth : {options.uplink_depth, kExpressUplink}) {
    for (std::uint16_t queue = 0; queue < options.queues; ++queue) {
      queue_pairs_.push_back(
          QueuePair{PacketRing(uplink_depth), PacketRing(options.downlink_depth)});
    }
  }
}

std::uint16_t RingPort::receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  const bool takes_both = queue < queues();
  const auto plain = static_cast<std::uint16_t>(takes_both ? queue : queue - queues());
  std::uint16_t received = queue_pairs_[express_queue(plain)].downlink.take(packets, count);
  if (takes_both) {
    received = static_cast<std::uint16_t>(
        received + queue_pairs_[plain].downlink.take(packets + received, count - received));
  }
  if (received != 0) count_received(plain, received, total_bytes(packets, received));
  return received;
}

std::uint16_t RingPort::transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
  QueuePair& pair = queue_pairs_[queue];
  // Count before the hand-over: afterwards the switch may have freed the packets.
  const auto accepted =
      static_cast<std::uint16_t>(std::min<std::uint32_t>(count, pair.uplink.room()));
  if (accepted == 0) return 0;
  count_sent(queue % queues(), accepted, total_bytes(packets, accepted));
  pair.uplink.put(packets, accepted);
  if (pair.switch_bell != nullptr) pair.switch_bell->ring();
  return accepted;
}

std::uint16_t RingPort::transmit_room(std::uint16_t queue) const {
  return static_cast<std::uint16_t>(
      std::min<std::uint32_t>(queue_pairs_[queue].uplink.room(), UINT16_MAX));
}

void RingPort::set_doorbells(std::uint16_t queue, Doorbell* at_switch, Doorbell* at_server) {
  for (const std::uint16_t each : {queue, express_queue(queue)}) {
    queue_pairs_.at(each).switch_bell = at_switch;
    queue_pairs_.at(each).server_bell = at_server;
  }
}

}  // namespace gradcube::dataplane
