// Frames on their way out of a socket: those of an iteration, which leave in as few trains as they
// can. A train is what the kernel takes in one piece and cuts into datagrams, or lets the NIC cut
// (UDP_SEGMENT): frames to one peer for one thread, of one length but for a shorter last one. (The
// kernel of the peer may look at the first alone to choose a queue.) All trains go in one system
// call (sendmmsg), which never waits.
//
// What the kernel does not take, because its buffers are full, stays; the next send() tries again.
// What it refuses for good is dropped: a datagram that is too long for the way that it knows, or
// one to which no way leads.
//
// Frames to one peer leave in the order in which they came. A train that is refused may have frames
// that pass: then each frame of the burst goes alone, and for ever where a device sends no trains.
//
// Ownership: owns the frames that it holds. Socket and peers outlive it. One thread. Allocates at
// the start alone.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_TRAINS_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_TRAINS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <rte_mbuf.h>
#include <sys/socket.h>
#include <vector>

#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/udp_peers.h"

namespace gradcube::dataplane {

class DatagramTrains {
 public:
  DatagramTrains(int socket, const UdpPeers& peers);
  ~DatagramTrains();
  DatagramTrains(const DatagramTrains&) = delete;
  DatagramTrains& operator=(const DatagramTrains&) = delete;

  bool empty() const { return count_ == 0; }
  // Frames that add() takes.
  std::uint16_t room() const { return static_cast<std::uint16_t>(kMostDatagrams - count_); }

  // Whether add() takes such a frame: not if it is too short, or in too many pieces.
  static bool takes(const rte_mbuf* frame) {
    return frame->data_len >= protocol::kOuterHeaderBytes && frame->nb_segs <= kMostParts;
  }
  // room() is not 0. Changes the frame's headers.
  void add(rte_mbuf* frame, std::uint16_t peer);

  struct Outcome {
    std::uint16_t sent = 0;  // frames
    std::uint64_t bytes = 0;
    std::uint16_t too_long = 0;  // dropped
    std::uint16_t failed = 0;    // dropped
    // Of the last that was dropped: of errno, and whose.
    int error = 0;
    std::uint16_t peer = UdpPeers::kNone;
  };
  Outcome send();

 private:
  static constexpr std::uint16_t kMostParts = 4;
  static constexpr std::uint16_t kNone = UINT16_MAX;

  struct Frame {
    rte_mbuf* packet;
    std::uint16_t peer;
    std::uint16_t next;  // in its train
  };
  struct Train {
    std::uint16_t first;
    std::uint16_t last;
    std::uint16_t frames;
    std::uint16_t peer;
    std::uint32_t each;  // bytes of a datagram
    std::uint32_t bytes;
    std::uint16_t source_port;  // of the frames
    std::uint8_t marks;
  };
  // For the length of a train's datagrams, and for its marks.
  struct alignas(cmsghdr) Control {
    std::byte bytes[CMSG_SPACE(sizeof(std::uint16_t)) + CMSG_SPACE(sizeof(int))];
  };

  void couple();
  Train train_of(std::uint16_t frame) const;
  bool fits(const Train& train, const Train& frame) const;
  void write_messages();
  void write_control(const Train& train, Control& control, msghdr& message) const;
  bool send_trains(Outcome& outcome);
  bool refuse(unsigned train, int error, Outcome& outcome);
  void release(const Train& train);
  void keep_from(unsigned train);

  int socket_;
  const UdpPeers& peers_;
  unsigned longest_train_ = kLongestTrain;
  unsigned longest_now_ = kLongestTrain;
  unsigned count_ = 0;
  std::array<Frame, kMostDatagrams> frames_{};
  unsigned train_count_ = 0;
  std::array<Train, kMostDatagrams> trains_{};
  std::vector<std::uint16_t> open_;  // by peer: the train that may still grow
  std::array<mmsghdr, kMostDatagrams> messages_{};
  std::array<Control, kMostDatagrams> controls_{};
  std::array<iovec, std::size_t{kMostDatagrams} * kMostParts> parts_{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_TRAINS_H_
