#include "dataplane/fabric/udp/datagram_burst.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <netinet/udp.h>

namespace gradcube::dataplane {

namespace {

// In a call: a burst of frames may come in as many, where each datagram is a piece of its own.
// Strangers that send without end must not keep the thread.
constexpr unsigned kMostReads = 2 * kMostFragments;
constexpr unsigned kMostInVain = 2;

int number_in(cmsghdr* item) {
  int number = 0;
  std::memcpy(&number, CMSG_DATA(item), sizeof number);
  return number;
}

}  // namespace

DatagramBurst::DatagramBurst(int socket, PacketPool& pool, const UdpPeers& peers,
                             std::uint32_t frame_bytes)
    : socket_(socket),
      peers_(peers),
      frames_(pool, peers, frame_bytes),
      buffers_(std::make_unique_for_overwrite<std::byte[]>(kBuffers * kBufferBytes)) {
  for (unsigned slot = 0; slot < kBuffers; ++slot) {
    msghdr& message = messages_[slot].msg_hdr;
    message.msg_name = &senders_[slot].any;
    parts_[slot] = {&buffers_[slot * kBufferBytes], kBufferBytes};
    message.msg_iov = &parts_[slot];
    message.msg_iovlen = 1;
    message.msg_control = controls_[slot].bytes;
    reset(slot);
  }
}

// What the kernel writes, beside the datagram.
void DatagramBurst::reset(unsigned slot) {
  msghdr& message = messages_[slot].msg_hdr;
  message.msg_namelen = sizeof(SocketAddress);
  message.msg_controllen = sizeof(Control);
  message.msg_flags = 0;
}

DatagramBurst::Outcome DatagramBurst::receive(rte_mbuf** packets, std::uint16_t count) {
  Outcome outcome;
  lacks_packets_ = false;
  take_all(packets, count, outcome);
  bool more = true;
  unsigned in_vain = 0;
  for (unsigned reads = 0; reads < kMostReads && in_vain < kMostInVain && next_ == came_ && more;
       ++reads) {
    if (outcome.received == count) break;
    const std::uint32_t dropped = outcome.strangers + outcome.refused;
    read();
    more = came_ == kBuffers;
    take_all(packets, count, outcome);
    if (outcome.strangers + outcome.refused - dropped >= came_) ++in_vain;
  }
  left_some_ = next_ < came_ || (more && outcome.received == 0 && count != 0);
  return outcome;
}

void DatagramBurst::read() {
  for (unsigned slot = 0; slot < came_; ++slot) reset(slot);
  const int came = recvmmsg(socket_, messages_.data(), kBuffers, MSG_DONTWAIT, nullptr);
  came_ = static_cast<unsigned>(std::max(came, 0));
  next_ = 0;
  if (came_ != 0) open(0);
}

// What the kernel says of a piece.
void DatagramBurst::open(unsigned slot) {
  msghdr& message = messages_[slot].msg_hdr;
  piece_ = {.peer = peers_.at(host_address(senders_[slot], message.msg_namelen)),
            .marks = 0,
            .each = messages_[slot].msg_len,
            .bytes = messages_[slot].msg_len,
            .at = 0};
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    if (item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_TOS) {
      piece_.marks = *CMSG_DATA(item) & kEcnBits;
    } else if (item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_TCLASS) {
      piece_.marks = static_cast<std::uint8_t>(number_in(item) & kEcnBits);
    } else if (item->cmsg_level == SOL_UDP && item->cmsg_type == UDP_GRO) {
      piece_.each = static_cast<std::uint32_t>(std::max(number_in(item), 1));
    }
  }
}

// As long as there are datagrams that were read, packets for them, and room for those.
void DatagramBurst::take_all(rte_mbuf** packets, std::uint16_t count, Outcome& outcome) {
  while (next_ < came_ && outcome.received < count) {
    rte_mbuf* packet = take_datagram(outcome);
    if (lacks_packets_) return;
    if (piece_.at >= piece_.bytes && ++next_ < came_) open(next_);
    if (packet == nullptr) continue;
    outcome.bytes += packet->pkt_len;
    packets[outcome.received++] = packet;
  }
}

// Null if no frame is whole with it, or if no packet is there for it.
rte_mbuf* DatagramBurst::take_datagram(Outcome& outcome) {
  const std::uint32_t bytes = std::min(piece_.each, piece_.bytes - piece_.at);
  FrameAssembly::Outcome taken{FrameAssembly::Taken::part};
  if (piece_.peer == UdpPeers::kNone) {
    ++outcome.strangers;
  } else {
    taken = frames_.take(piece_.peer, piece_.marks,
                         {&buffers_[next_ * kBufferBytes + piece_.at], bytes});
    lacks_packets_ = taken.taken == FrameAssembly::Taken::no_packet;
    if (lacks_packets_) return nullptr;
    if (taken.taken == FrameAssembly::Taken::refused) ++outcome.refused;
    outcome.unfinished += taken.unfinished;
  }
  piece_.at += bytes;
  return taken.frame;
}

}  // namespace gradcube::dataplane
