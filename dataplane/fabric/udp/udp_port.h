// A port that is a socket: its frames travel as datagrams between the addresses of hosts, beside
// all else that a NIC carries. It needs no right, no driver and no interface of its own.
//
// What an iteration sends costs one system call, and so does each burst that it receives. What
// travels of a frame is in datagram.h, who may send in datagram_burst.h, and how the kernel is
// asked in datagram_trains.h and udp_socket.h. docs/udp.md says why it is so.
//
// Queues. Each has a socket at the port's address, and the kernel brings the frames of thread t to
// queue t mod queues.
//
// Frames to all, by which ports tell how they are cabled, have nobody to go to: who hears a port is
// in its list. They are dropped without being counted.
//
// Back-pressure. Without a free mbuf datagrams stay in the socket; when that is full the kernel
// drops them. What the kernel does not take stays in the port, whose room is 0 until it is gone.
//
// Length. No router cuts a datagram. The constructor refuses an MTU that a link of this host does
// not carry, and problem() tells when one farther away does not.
//
// Pacing. A pacer (pacer.h) holds frames back, as in other ports; the queues share the rate evenly.
// Where a queueing discipline paces, the kernel spreads a train's datagrams by the same rate.
//
// Ownership: as port.h says; a received frame lies in an mbuf of its queue's pool. Pools and clock
// outlive the port.
//
// Threads: as port.h says; next_event() too is for the queue's thread, and the clock is read there.
// drop_counts(), look() and problem() are for one thread at a time.
//
// Errors: only the constructor throws.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <rte_mbuf.h>
#include <string>
#include <vector>

#include "dataplane/fabric/pacer.h"
#include "dataplane/fabric/udp/datagram_burst.h"
#include "dataplane/fabric/udp/datagram_trains.h"
#include "dataplane/fabric/udp/udp_peers.h"
#include "dataplane/fabric/udp/udp_port_counters.h"
#include "dataplane/fabric/udp/udp_socket.h"
#include "dataplane/fabric/waking_port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "dataplane/host/relaxed_counter.h"

namespace gradcube::dataplane {

struct UdpPortOptions {
  control::HostAddress at = {};  // of its sockets
  bcube::LinkAddress link = {};  // in frames
  std::vector<UdpPeer> peers = {};
  // The largest IP packet of a frame, in bytes, and of a datagram; frames that do not fit into one
  // travel in fragments (datagram.h).
  std::uint32_t mtu = mtu_of_frames(1500, false, false);
  std::uint32_t datagram_mtu = 1500;
  // One for each queue, for received frames: of mtu + kEthernetBytes bytes at least. Queues of one
  // poller may share a pool.
  std::vector<PacketPool*> pools = {};
  // In bytes on the wire, those of datagrams with kWireOverheadBytes; 0: not limited. At least
  // LinkClock::kMinRate for each queue.
  std::uint64_t bits_per_second = 0;
};

class UdpPort final : public WakingPort {
 public:
  // How long the port leaves the kernel alone after it did not take all frames.
  static constexpr Nanoseconds kRetry = 50'000;

  // Throws control::SetupError if this host does not have the address, another process has it, or
  // no way of the MTU leads to a peer; control::UsageError for a rate that is too low;
  // std::invalid_argument if the frames are too long for its datagrams.
  UdpPort(const UdpPortOptions& options, Clock& clock);

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  std::uint16_t transmit(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override;
  // In full frames; of shorter ones more may be accepted.
  std::uint16_t transmit_room(std::uint16_t queue) const override;

  int wake_descriptor(std::uint16_t queue) const override {
    return queues_[queue].socket.descriptor();
  }
  Nanoseconds next_event(std::uint16_t queue) const override;

  // Asks the kernel for its part of them.
  UdpPortCounts drop_counts(std::uint16_t queue);

  std::string problem() const override { return problem_; }
  void look() override;
  void add_to_status(nlohmann::ordered_json& entry) override;

 private:
  // A cache line per queue, so that engines do not share one.
  struct alignas(64) Queue {
    Queue(const UdpPortOptions& options, PacketPool& pool, const UdpPeers& peers,
          const Pacer& its_pacer);

    UdpSocket socket;
    DatagramBurst incoming;
    DatagramTrains outgoing;
    Pacer pacer;
    Nanoseconds retry_at = 0;
    UdpPortNumbers<RelaxedCounter> numbers;
    // Of the last frame that was not sent: whose it was, above errno. 0: none since look().
    std::atomic<std::uint64_t> failure{0};
  };

  void check_ways() const;
  void send(Queue& own, std::uint16_t queue, Nanoseconds now);
  std::string too_long(std::uint16_t peer, std::uint32_t carried) const;
  std::string failure_text(std::uint64_t failure) const;

  const control::HostAddress at_;
  const std::uint32_t datagram_mtu_;
  std::string problem_;
  UdpPeers peers_;
  Clock& clock_;
  std::deque<Queue> queues_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_PORT_H_
