// A port of the embedded fabric: for each queue, an uplink ring to the emulated switch and a
// downlink ring from it. Packets pass by reference, chained or not; nothing is copied.
//
// Beside each queue there is an express queue, in rings of its own: the server sends on queue q or
// on express_queue(q), and receives on queue q what came by either, the express frames first, or on
// express_queue(q) these alone.
//
// It is not DPDK's ring device: a DPDK build has room for few devices (32 in Debian's), and a
// cluster has many ports.
//
// Threads: for each queue, one engine thread (the calls of Port) and one switch shard
// (switch_receive() and switch_transmit()); both may be the same thread. The doorbells are set
// before either runs.
#ifndef GRADCUBE_DATAPLANE_FABRIC_EMULATED_RING_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_EMULATED_RING_PORT_H_

#include <cstdint>
#include <vector>

#include "dataplane/fabric/port.h"
#include "dataplane/host/doorbell.h"
#include "dataplane/host/packet_ring.h"

namespace gradcube::dataplane {

struct RingPortOptions {
  std::uint16_t queues = 1;
  std::uint32_t mtu = 1500;
  // Packets that the server has sent and the switch has not received, per queue. With a rate this
  // is the server's transmit queue: it adds depth x frame / rate to the latency of every packet,
  // but for those of the express queue.
  std::uint32_t uplink_depth = 1024;
  // Packets that the switch has delivered and the server has not received, per queue.
  std::uint32_t downlink_depth = 1024;
};

class RingPort final : public Port {
 public:
  // Throws std::runtime_error if DPDK has no memory left. Needs an Eal.
  explicit RingPort(const RingPortOptions& options);

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  std::uint16_t transmit_room(std::uint16_t queue) const override;
  std::uint16_t express_queue(std::uint16_t queue) const override {
    return static_cast<std::uint16_t>(queues() + queue);
  }

  // The doorbells to ring for a queue and its express queue: `at_switch` when the server has sent,
  // `at_server` when the switch has delivered or has made room; nullptr if both sides are on one
  // poller. The doorbells must outlive the port.
  void set_doorbells(std::uint16_t queue, Doorbell* at_switch, Doorbell* at_server);

  // The switch's end, of any queue: receives packets that the server has sent on it, and returns
  // how many. The server may have waited for room.
  std::uint16_t switch_receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) {
    QueuePair& pair = queue_pairs_[queue];
    const std::uint16_t taken = pair.uplink.take(packets, count);
    if (taken != 0 && pair.server_bell != nullptr) pair.server_bell->ring();
    return taken;
  }
  // The switch's end: delivers packets, and returns how many the ring had room for.
  std::uint16_t switch_transmit(std::uint16_t queue, rte_mbuf* const* packets,
                                std::uint16_t count) {
    QueuePair& pair = queue_pairs_[queue];
    const std::uint16_t given = pair.downlink.put(packets, count);
    if (given != 0 && pair.server_bell != nullptr) pair.server_bell->ring();
    return given;
  }
  // The switch's end: true if there is nothing to receive.
  bool nothing_sent(std::uint16_t queue) const { return queue_pairs_[queue].uplink.empty(); }

 private:
  struct QueuePair {
    PacketRing uplink;
    PacketRing downlink;
    Doorbell* switch_bell = nullptr;
    Doorbell* server_bell = nullptr;
  };

  std::vector<QueuePair> queue_pairs_;  // those of the express queues behind all others
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_EMULATED_RING_PORT_H_
