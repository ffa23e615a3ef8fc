// A port on a network interface of the kernel: a veth, or a NIC for which DPDK has no driver. It
// needs CAP_NET_RAW, and Linux 4.20 or later: an older one gives a slot back while its frame is
// still under way through a veth. The interface keeps its settings.
//
// Frames pass through rings that the process shares with the kernel, by packet sockets (AF_PACKET),
// one per queue. They are copied into a slot to be sent, and out of a slot into an mbuf when they
// are received. A burst costs one system call to send and none to receive. Jumbo frames pass as
// others do. No call ever waits.
//
// Why not one of DPDK's drivers, as of 22.11: its af_packet takes frames up to 1518 bytes and waits
// in poll() when its ring is full, so one slow port stops all others of the lcore. net_tap makes a
// system call per packet, and af_xdp, where it copies, sends only the first segment of a chain. A
// Port also tells its room beforehand, and has a descriptor to sleep on.
//
// Why version 2 of the rings (TPACKET_V2): a frame can be received as soon as it has arrived.
// Version 3 packs frames into blocks and hands a block over when it is full, or after a
// millisecond or more; for acknowledgements that is too long.
//
// Queues. The frames of thread t are received on queue t mod queues, as the thread's engine
// expects it; the thread is in the UDP source port. A filter in the kernel lets in Gradcube's
// frames alone, for the port's MAC or for all hosts, so what this host sends or what others flood
// never takes a slot.
//
// The port's MAC may be another than the interface's. Then the interface keeps its own, and takes
// frames for both while the port lives; one that cannot filter by two takes all frames. The
// kernel's own IP stack gets a copy of what comes for the interface's MAC: if the interface has the
// destination's IP address, it answers with ICMP errors. Give it none.
//
// Back-pressure. Without a free mbuf frames stay in the ring; when no slot is free the kernel drops
// them. What the kernel does not take, because its queue is full or the interface is down, stays in
// the ring, in order; transmit() and receive() try again. It is sent when the interface is up
// again. A port whose interface was deleted sends and receives no more until there is one of its
// name again, which look() finds. transmit() drops frames that the interface cannot
// carry.
//
// Pacing. With a rate, transmit_room() is 0 while a wire of that rate would be busy (pacer.h), so
// frames queue in the engines, where they have an order, and not in the kernel. The queues share
// the rate evenly.
//
// Ownership: as port.h says; a received frame lies in an mbuf of its queue's pool. Pools and clock
// outlive the port. Owns sockets and rings, which live in the network namespace of the thread that
// made it.
//
// Threads: as port.h says; next_event() too is for the queue's thread, and the clock is read there.
// drop_counts(), look() and problem() are for one thread at a time.
//
// Errors: only the constructor throws; also where another daemon has the interface
// (interface_claim.h).
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_H_

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <rte_mbuf.h>
#include <string>
#include <vector>

#include "dataplane/fabric/kernel/interface_claim.h"
#include "dataplane/fabric/kernel/network_interface.h"
#include "dataplane/fabric/kernel/packet_port_counters.h"
#include "dataplane/fabric/kernel/packet_socket.h"
#include "dataplane/fabric/kernel/receive_ring.h"
#include "dataplane/fabric/kernel/transmit_ring.h"
#include "dataplane/fabric/pacer.h"
#include "dataplane/fabric/waking_port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

struct PacketPortOptions {
  std::string interface = {};
  // Whose frames it receives; zeros: the interface's.
  std::array<std::uint8_t, 6> mac = {};
  // The largest IP packet, in bytes; 0: the interface's.
  std::uint32_t mtu = 0;
  // One for each queue, for received frames: of mtu + kEthernetBytes bytes at least. Queues of one
  // poller may share a pool.
  std::vector<PacketPool*> pools = {};
  // Frames that have arrived and were not received, per queue. The ring may be a little longer.
  std::uint32_t receive_depth = 1024;
  // Frames that the kernel has not sent, per queue.
  std::uint32_t transmit_depth = 256;
  // In bytes on the wire, with kWireOverheadBytes; 0: not limited. At least LinkClock::kMinRate for
  // each queue.
  std::uint64_t bits_per_second = 0;
};

class PacketPort final : public WakingPort {
 public:
  // How long the port leaves the kernel alone after it did not take all frames.
  static constexpr Nanoseconds kRetry = 50'000;
  // The same while the interface takes nothing because it is down or gone: twice as long each time,
  // up to this.
  static constexpr Nanoseconds kLongestRetry = 20'000'000;

  // Throws control::SetupError if there is no such interface, it is down or carries less than the
  // MTU, or the kernel refuses; control::UsageError for a rate that is too low.
  PacketPort(const PacketPortOptions& options, Clock& clock);

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  // In full frames; of shorter ones more may be accepted.
  std::uint16_t transmit_room(std::uint16_t queue) const override;

  // Whose frames it receives. The interface's is that of when the port was made.
  const std::array<std::uint8_t, 6>& mac() const { return mac_; }

  int wake_descriptor(std::uint16_t queue) const override {
    return queues_[queue].socket.descriptor();
  }
  // When it may accept a frame again, send one that the kernel did not take, or receive one for
  // which there was no mbuf.
  Nanoseconds next_event(std::uint16_t queue) const override;

  // Asks the kernel for its part of them.
  PacketPortCounts drop_counts(std::uint16_t queue);

  std::string problem() const override { return problem_; }
  // If the interface is no longer there, and one of its name is, the port goes on with that one.
  void look() override;
  void add_to_status(nlohmann::ordered_json& entry) override;

 private:
  // A cache line per queue, so that engines do not share one.
  struct alignas(64) Queue {
    Queue(const NetworkInterface& interface, const PacketRingSizes& sizes, PacketPool& its_pool,
          const Pacer& its_pacer);

    PacketSocket socket;
    ReceiveRing arrived;
    TransmitRing outgoing;
    Pacer pacer;
    PacketPool& pool;
    std::uint32_t buffer_bytes;  // that one mbuf of the pool holds
    bool lacks_buffer = false;
    Nanoseconds retry_at = 0;
    Nanoseconds retry_after = kRetry;
    PacketPortNumbers<RelaxedCounter> numbers;
  };

  PacketPort(const PacketPortOptions& options, const NetworkInterface& interface, Clock& clock);
  rte_mbuf* take_frame(Queue& own);
  void kick(Queue& own, Nanoseconds now);
  void listen();

  const std::string name_;
  std::string problem_;
  std::array<std::uint8_t, 6> mac_;
  Clock& clock_;
  std::deque<Queue> queues_;
  std::optional<InterfaceClaim> claim_;  // behind the sockets that show that it is a daemon's
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_PACKET_PORT_H_
