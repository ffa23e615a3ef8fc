// Frames that come out of a socket. One system call (recvmmsg), which never waits, reads up to
// kBuffers pieces. A piece is a datagram, or several of one sender that the kernel has put together
// (UDP_GRO), of one length but for a shorter last one. Each datagram is copied into the packet of
// its frame (frame_assembly.h), which gets its outer headers anew from what is known of the sender.
//
// A datagram whose sender is no peer, by its address and UDP port, is dropped and counted, and so
// is one that is no fragment of a frame. All else is the engine's to check.
//
// Ownership: received frames are the caller's. Owns the buffers; the kernel gives them memory as
// far as they are used. Socket, pool and peers outlive it. One thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <rte_mbuf.h>
#include <sys/socket.h>

#include "dataplane/fabric/udp/frame_assembly.h"
#include "dataplane/fabric/udp/udp_peers.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

class DatagramBurst {
 public:
  // frame_bytes: of the longest frame; a packet of the pool holds it.
  DatagramBurst(int socket, PacketPool& pool, const UdpPeers& peers, std::uint32_t frame_bytes);
  DatagramBurst(const DatagramBurst&) = delete;
  DatagramBurst& operator=(const DatagramBurst&) = delete;

  struct Outcome {
    std::uint16_t received = 0;  // frames
    std::uint64_t bytes = 0;
    std::uint32_t strangers = 0;   // datagrams
    std::uint32_t refused = 0;     // datagrams
    std::uint32_t unfinished = 0;  // frames, of which some fragment did not come
  };
  Outcome receive(rte_mbuf** packets, std::uint16_t count);

  // Whether the last receive() has left datagrams that were there, so that the descriptor need not
  // announce them: for want of packets, beyond `count`, or behind others that were all dropped.
  bool lacks_packets() const { return lacks_packets_; }
  bool left_some() const { return left_some_; }

 private:
  static constexpr unsigned kBuffers = 16;
  static constexpr std::size_t kBufferBytes = 65536;  // more than any piece has

  // For the congestion marks, and for the length of datagrams that were put together.
  struct alignas(cmsghdr) Control {
    std::byte bytes[2 * CMSG_SPACE(sizeof(int))];
  };
  struct Piece {
    std::uint16_t peer = UdpPeers::kNone;
    std::uint8_t marks = 0;
    std::uint32_t each = 0;  // bytes of a datagram
    std::uint32_t bytes = 0;
    std::uint32_t at = 0;  // where the next datagram begins
  };

  void read();
  void reset(unsigned slot);
  void open(unsigned slot);
  void take_all(rte_mbuf** packets, std::uint16_t count, Outcome& outcome);
  rte_mbuf* take_datagram(Outcome& outcome);

  int socket_;
  const UdpPeers& peers_;
  FrameAssembly frames_;
  bool lacks_packets_ = false;
  bool left_some_ = false;
  unsigned came_ = 0;  // pieces
  unsigned next_ = 0;  // the one that is read next, as far as piece_ says
  Piece piece_;
  std::unique_ptr<std::byte[]> buffers_;
  std::array<mmsghdr, kBuffers> messages_{};
  std::array<iovec, kBuffers> parts_{};
  std::array<SocketAddress, kBuffers> senders_{};
  std::array<Control, kBuffers> controls_{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_BURST_H_
