// Frames that come out of a socket: a burst of datagrams in one system call (recvmmsg), which never
// waits. The kernel writes each where it stays, into a packet that waits for it behind the room of
// its headers; these are made anew, from what is known of its sender.
//
// A datagram whose sender is no peer, by its address and UDP port, is dropped and counted, and so
// is one that is too long or too short to be a frame. All else is the engine's to check.
//
// Ownership: received frames are the caller's. Keeps up to kMostDatagrams packets of the pool.
// Socket, pool and peers outlive it. One thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/udp_peers.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

class DatagramBurst {
 public:
  // frame_bytes: of the longest frame; a packet of the pool holds it.
  DatagramBurst(int socket, PacketPool& pool, const UdpPeers& peers, std::uint32_t frame_bytes);
  ~DatagramBurst();
  DatagramBurst(const DatagramBurst&) = delete;
  DatagramBurst& operator=(const DatagramBurst&) = delete;

  struct Outcome {
    std::uint16_t received = 0;  // frames
    std::uint64_t bytes = 0;
    std::uint16_t strangers = 0;
    std::uint16_t refused = 0;
  };
  Outcome receive(rte_mbuf** packets, std::uint16_t count);

  // Whether the last receive() has left datagrams that were there, so that the descriptor need not
  // announce them: for want of packets, or behind others that were all dropped.
  bool lacks_packets() const { return lacks_packets_; }
  bool left_some() const { return lacks_packets_ || left_some_; }

 private:
  // For the traffic class of IPv6, the longest that there is.
  struct alignas(cmsghdr) Control {
    std::byte bytes[CMSG_SPACE(sizeof(int))];
  };

  unsigned prepare(unsigned count);
  void reset(unsigned slot);
  rte_mbuf* take(unsigned slot, std::uint16_t peer);

  int socket_;
  PacketPool& pool_;
  const UdpPeers& peers_;
  std::uint32_t most_bytes_;  // of a datagram
  bool lacks_packets_ = false;
  bool left_some_ = false;
  std::array<rte_mbuf*, kMostDatagrams> packets_{};  // null where one was taken
  std::array<mmsghdr, kMostDatagrams> messages_{};
  std::array<iovec, kMostDatagrams> parts_{};
  std::array<SocketAddress, kMostDatagrams> senders_{};
  std::array<Control, kMostDatagrams> controls_{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_
