// Puts frames together that come in fragments (datagram.h), each in a packet of its own. Fragments
// may come in any order and twice. A frame that lacks one is dropped when kAtOnce later frames of
// its sender have begun and are not whole either; its sender sends it again. A fragment that comes
// when its frame is whole already begins such a frame. A frame is marked by the network as much as
// its fragment that is marked most.
//
// What is put together of two frames of one number fails the frame's check, in the engine.
//
// Ownership: a whole frame is the caller's; owns those under way. Pool and peers outlive it. One
// thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_FRAME_ASSEMBLY_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_FRAME_ASSEMBLY_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <span>
#include <vector>

#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/udp_peers.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

class FrameAssembly {
 public:
  // Of one sender: what its sockets have under way, one for each of its queues, and some that wait
  // for a fragment that was overtaken.
  static constexpr unsigned kAtOnce = 8;

  // frame_bytes: of the longest frame; a packet of the pool holds it.
  FrameAssembly(PacketPool& pool, const UdpPeers& peers, std::uint32_t frame_bytes);
  ~FrameAssembly();
  FrameAssembly(const FrameAssembly&) = delete;
  FrameAssembly& operator=(const FrameAssembly&) = delete;

  enum class Taken : std::uint8_t {
    whole,      // `frame` is complete
    part,       // more of it has to come
    refused,    // it is no fragment
    no_packet,  // nothing of it was taken: none is free
  };
  struct Outcome {
    Taken taken;
    rte_mbuf* frame = nullptr;
    std::uint8_t unfinished = 0;  // frames that were dropped, for they lack fragments
  };
  // A datagram of this peer, with the marks that came.
  Outcome take(std::uint16_t peer, std::uint8_t marks, std::span<const std::byte> datagram);

 private:
  struct Fragment {
    std::uint16_t source_port;
    std::uint16_t number;
    std::uint32_t body;  // bytes of the frame's
    std::uint8_t index;
    std::uint8_t of;
    std::uint32_t from;  // the first byte of the body that it carries
    std::uint32_t bytes;
  };
  struct Unfinished {
    rte_mbuf* packet = nullptr;
    std::uint16_t source_port = 0;
    std::uint16_t number = 0;
    std::uint32_t body = 0;
    std::uint8_t of = 0;
    std::uint8_t marks = 0;
    std::uint8_t missing = 0;  // a bit for each fragment
    std::uint64_t turn = 0;    // in which it has begun, among those of its sender
  };
  struct Sender {
    std::array<Unfinished, kAtOnce> frames;
    std::uint64_t begun = 0;
  };

  bool read(std::span<const std::byte> datagram, Fragment& fragment) const;
  Unfinished& place_of(Sender& sender, const Fragment& fragment, Outcome& outcome) const;
  rte_mbuf* with_headers(std::uint16_t peer, const Fragment& fragment);
  static void finish(rte_mbuf* packet, std::uint8_t marks);

  PacketPool& pool_;
  const UdpPeers& peers_;
  std::uint32_t most_of_body_;
  std::vector<Sender> senders_;  // by peer
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_FRAME_ASSEMBLY_H_
