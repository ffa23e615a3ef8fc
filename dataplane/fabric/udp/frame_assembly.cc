#include "dataplane/fabric/udp/frame_assembly.h"

#include <algorithm>
#include <cstring>
#include <rte_byteorder.h>
#include <rte_ip.h>
#include <utility>

namespace gradcube::dataplane {

namespace {

std::uint16_t number_at(std::span<const std::byte> datagram, std::uint32_t offset_in_frame) {
  std::uint16_t number = 0;
  std::memcpy(&number, &datagram[offset_in_frame - kDatagramAt], sizeof number);
  return rte_be_to_cpu_16(number);
}

}  // namespace

FrameAssembly::FrameAssembly(PacketPool& pool, const UdpPeers& peers, std::uint32_t frame_bytes)
    : pool_(pool), peers_(peers), most_of_body_(frame_bytes - kBodyAt), senders_(peers.size()) {}

FrameAssembly::~FrameAssembly() {
  for (Sender& sender : senders_) {
    for (Unfinished& frame : sender.frames) rte_pktmbuf_free(frame.packet);
  }
}

FrameAssembly::Outcome FrameAssembly::take(std::uint16_t peer, std::uint8_t marks,
                                           std::span<const std::byte> datagram) {
  Fragment fragment{};
  if (!read(datagram, fragment)) return {Taken::refused};
  Outcome outcome{Taken::part};
  Unfinished alone;
  Unfinished& frame = fragment.of == 1 ? alone : place_of(senders_[peer], fragment, outcome);
  if (frame.packet == nullptr) frame.packet = with_headers(peer, fragment);
  if (frame.packet == nullptr) {
    outcome.taken = Taken::no_packet;
    return outcome;
  }
  std::memcpy(rte_pktmbuf_mtod_offset(frame.packet, void*, kBodyAt + fragment.from),
              datagram.data() + kFragmentHeaderBytes, fragment.bytes);
  frame.marks = std::max(frame.marks, marks);
  frame.missing &= static_cast<std::uint8_t>(~(1U << fragment.index));
  if (frame.missing != 0) return outcome;
  outcome.taken = Taken::whole;
  outcome.frame = std::exchange(frame.packet, nullptr);
  finish(outcome.frame, frame.marks);
  return outcome;
}

bool FrameAssembly::read(std::span<const std::byte> datagram, Fragment& fragment) const {
  if (datagram.size() < kFragmentHeaderBytes) return false;
  const std::uint32_t length = number_at(datagram, kUdpLengthAt);
  const std::uint16_t place = number_at(datagram, kPlaceAt);
  fragment.source_port = number_at(datagram, kSourcePortAt);
  fragment.number = number_at(datagram, kNumberAt);
  fragment.index = static_cast<std::uint8_t>(place >> 8);
  fragment.of = static_cast<std::uint8_t>(place);
  if (length < kFragmentHeaderBytes || fragment.of == 0 || fragment.of > kMostFragments ||
      fragment.index >= fragment.of) {
    return false;
  }
  fragment.body = length - kFragmentHeaderBytes;
  const std::uint32_t each = bytes_of_fragment(fragment.body, fragment.of);
  fragment.from = fragment.index * each;
  if (fragment.body > most_of_body_ || fragment.from > fragment.body) return false;
  fragment.bytes = std::min(each, fragment.body - fragment.from);
  return datagram.size() == kFragmentHeaderBytes + each;
}

// Where it has begun, or begins: in the place of one that is finished, or of the oldest.
FrameAssembly::Unfinished& FrameAssembly::place_of(Sender& sender, const Fragment& fragment,
                                                   Outcome& outcome) const {
  Unfinished* oldest = &sender.frames.front();
  for (Unfinished& frame : sender.frames) {
    if (frame.packet != nullptr && frame.number == fragment.number &&
        frame.source_port == fragment.source_port && frame.body == fragment.body &&
        frame.of == fragment.of) {
      return frame;
    }
    if (oldest->packet != nullptr && (frame.packet == nullptr || frame.turn < oldest->turn)) {
      oldest = &frame;
    }
  }
  if (oldest->packet != nullptr) {
    rte_pktmbuf_free(oldest->packet);
    outcome.unfinished = 1;
  }
  *oldest = {.source_port = fragment.source_port,
             .number = fragment.number,
             .body = fragment.body,
             .of = fragment.of,
             .missing = static_cast<std::uint8_t>((1U << fragment.of) - 1),
             .turn = ++sender.begun};
  return *oldest;
}

// Of the frame; its marks follow.
rte_mbuf* FrameAssembly::with_headers(std::uint16_t peer, const Fragment& fragment) {
  rte_mbuf* packet = pool_.allocate();
  if (packet == nullptr) return nullptr;
  const std::uint32_t whole = kBodyAt + fragment.body;
  packet->data_len = static_cast<std::uint16_t>(whole);
  packet->pkt_len = whole;
  const UdpPeers::OuterHeaders& headers = peers_.headers(peer);
  std::memcpy(rte_pktmbuf_mtod(packet, void*), headers.data(), headers.size());
  put_field16(packet, kSourcePortAt, fragment.source_port);
  put_field16(packet, kIpLengthAt, whole - kEthernetBytes);
  put_field16(packet, kUdpLengthAt, whole - kDatagramAt);
  return packet;
}

void FrameAssembly::finish(rte_mbuf* packet, std::uint8_t marks) {
  *rte_pktmbuf_mtod_offset(packet, std::uint8_t*, kTosAt) = marks;
  auto* ip = rte_pktmbuf_mtod_offset(packet, rte_ipv4_hdr*, kEthernetBytes);
  ip->hdr_checksum = 0;
  ip->hdr_checksum = rte_ipv4_cksum(ip);
}

}  // namespace gradcube::dataplane
