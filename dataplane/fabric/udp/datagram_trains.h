// Frames on their way out of a socket: an iteration's, cut into datagrams (datagram.h), which leave
// in as few trains as they can. A train is what the kernel takes in one piece and cuts again,
// or lets the NIC cut (UDP_SEGMENT): datagrams to one peer for one thread, of one length but for a
// shorter last one. (The kernel of the peer may look at the first alone to choose a queue.) All
// trains go in one system call (sendmmsg), which never waits.
//
// What the kernel does not take, because its buffers are full, stays; the next send() tries again.
// What it refuses for good is dropped: a datagram that is too long for the way that it knows, or
// one to which no way leads. What is left of its frame goes, and is of no use.
//
// Datagrams to one peer leave in the order in which their frames came. A train that is refused may
// have some that pass: then each datagram of the burst goes alone, and for ever where a device
// sends no trains.
//
// Ownership: owns the frames that it holds, each until its last datagram is gone. Socket and peers
// outlive it. One thread. Allocates at the start alone.
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
  // most_of_body: bytes of a frame's body that a datagram carries; fragments: of the longest frame,
  // at most kMostFragments.
  DatagramTrains(int socket, const UdpPeers& peers, std::uint32_t most_of_body, unsigned fragments);
  ~DatagramTrains();
  DatagramTrains(const DatagramTrains&) = delete;
  DatagramTrains& operator=(const DatagramTrains&) = delete;

  bool empty() const { return count_ == 0; }
  // Frames that add() takes, however long they are.
  std::uint16_t room() const {
    return static_cast<std::uint16_t>((kMostDatagrams - count_) / fragments_);
  }
  // In how many datagrams a frame travels.
  unsigned fragments_of(const rte_mbuf* frame) const {
    const std::uint32_t body = frame->pkt_len - kBodyAt;
    return body <= most_of_body_ ? 1 : (body + most_of_body_ - 1) / most_of_body_;
  }

  // Whether add() takes such a frame: its headers are in one piece, and what follows is in few.
  static bool takes(const rte_mbuf* frame) {
    return frame->data_len >= kBodyAt && frame->nb_segs <= kMostParts;
  }
  // room() is not 0, and the frame is no longer than the longest. Changes the frame's headers.
  void add(rte_mbuf* frame, std::uint16_t peer);

  struct Outcome {
    std::uint16_t sent = 0;  // frames
    std::uint64_t bytes = 0;
    std::uint16_t too_long = 0;  // frames that were dropped
    std::uint16_t failed = 0;    // frames that were dropped
    // Of the last that was dropped: of errno, and whose.
    int error = 0;
    std::uint16_t peer = UdpPeers::kNone;
  };
  Outcome send();

 private:
  static constexpr std::uint16_t kMostParts = 4;
  static constexpr std::uint16_t kNone = UINT16_MAX;

  struct Datagram {
    rte_mbuf* frame;
    std::uint32_t from;   // the first byte of the frame's body that it carries
    std::uint32_t bytes;  // of it
    std::uint32_t each;   // bytes of the datagram, filled up
    std::uint16_t peer;
    std::uint16_t next;  // in its train
    bool is_last;        // of its frame
    bool is_broken;      // another one of its frame was dropped
    // Of a fragment that is not the first, which has it in the frame.
    std::array<std::byte, kFragmentHeaderBytes> header;
  };
  struct Train {
    std::uint16_t first;
    std::uint16_t last;
    std::uint16_t datagrams;
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
  Train train_of(std::uint16_t datagram) const;
  bool fits(const Train& train, const Train& datagram) const;
  void write_messages();
  void write_parts(const Datagram& datagram, std::size_t& part);
  void write_control(const Train& train, Control& control, msghdr& message) const;
  bool send_trains(Outcome& outcome);
  bool refuse(unsigned train, int error, Outcome& outcome);
  unsigned release(const Train& train, std::uint64_t& bytes);
  unsigned break_frames(const Train& train);
  void keep_from(unsigned train);

  int socket_;
  const UdpPeers& peers_;
  std::uint32_t most_of_body_;
  unsigned fragments_;
  std::uint16_t number_ = 0;  // of the next frame
  unsigned longest_train_ = kLongestTrain;
  unsigned longest_now_ = kLongestTrain;
  unsigned count_ = 0;
  std::array<Datagram, kMostDatagrams> datagrams_{};
  unsigned train_count_ = 0;
  std::array<Train, kMostDatagrams> trains_{};
  std::vector<std::uint16_t> open_;  // by peer: the train that may still grow
  std::array<mmsghdr, kMostDatagrams> messages_{};
  std::array<Control, kMostDatagrams> controls_{};
  // Of each its header, parts of its frame, and what fills it up.
  std::array<iovec, std::size_t{kMostDatagrams} * (kMostParts + 2)> parts_{};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_TRAINS_H_
