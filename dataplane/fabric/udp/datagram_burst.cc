#include "dataplane/fabric/udp/datagram_burst.h"

#include <algorithm>
#include <cstring>
#include <netinet/in.h>
#include <rte_byteorder.h>
#include <rte_ip.h>

namespace gradcube::dataplane {

namespace {

void put16(rte_mbuf* packet, std::uint32_t offset, std::uint32_t value) {
  const std::uint16_t field = rte_cpu_to_be_16(static_cast<std::uint16_t>(value));
  std::memcpy(rte_pktmbuf_mtod_offset(packet, char*, offset), &field, sizeof field);
}

std::uint8_t marks_of(msghdr& message) {
  for (cmsghdr* item = CMSG_FIRSTHDR(&message); item != nullptr;
       item = CMSG_NXTHDR(&message, item)) {
    const bool is_tos = item->cmsg_level == IPPROTO_IP && item->cmsg_type == IP_TOS;
    const bool is_class = item->cmsg_level == IPPROTO_IPV6 && item->cmsg_type == IPV6_TCLASS;
    if (is_tos) return *CMSG_DATA(item) & kEcnBits;
    if (!is_class) continue;
    int traffic_class = 0;
    std::memcpy(&traffic_class, CMSG_DATA(item), sizeof traffic_class);
    return static_cast<std::uint8_t>(traffic_class & kEcnBits);
  }
  return 0;
}

}  // namespace

DatagramBurst::DatagramBurst(int socket, PacketPool& pool, const UdpPeers& peers,
                             std::uint32_t frame_bytes)
    : socket_(socket), pool_(pool), peers_(peers), most_bytes_(frame_bytes - kDatagramAt) {
  for (unsigned slot = 0; slot < kMostDatagrams; ++slot) {
    msghdr& message = messages_[slot].msg_hdr;
    message.msg_name = &senders_[slot].any;
    message.msg_iov = &parts_[slot];
    message.msg_iovlen = 1;
    message.msg_control = controls_[slot].bytes;
    reset(slot);
  }
}

DatagramBurst::~DatagramBurst() {
  for (rte_mbuf* packet : packets_) rte_pktmbuf_free(packet);
}

// What the kernel writes, beside the datagram.
void DatagramBurst::reset(unsigned slot) {
  msghdr& message = messages_[slot].msg_hdr;
  message.msg_namelen = sizeof(SocketAddress);
  message.msg_controllen = sizeof(Control);
  message.msg_flags = 0;
}

// How many slots have packets, of so many that are wanted.
unsigned DatagramBurst::prepare(unsigned count) {
  for (unsigned slot = 0; slot < count; ++slot) {
    if (packets_[slot] != nullptr) continue;
    rte_mbuf* packet = pool_.allocate();
    if (packet == nullptr) return slot;
    packets_[slot] = packet;
    parts_[slot] = {rte_pktmbuf_mtod_offset(packet, void*, kDatagramAt), most_bytes_};
  }
  return count;
}

DatagramBurst::Outcome DatagramBurst::receive(rte_mbuf** packets, std::uint16_t count) {
  Outcome outcome;
  const unsigned ready = prepare(std::min<unsigned>(count, kMostDatagrams));
  lacks_packets_ = ready == 0 && count != 0;
  left_some_ = false;
  if (ready == 0) return outcome;
  const int came = recvmmsg(socket_, messages_.data(), ready, MSG_DONTWAIT, nullptr);
  for (int i = 0; i < came; ++i) {
    const auto slot = static_cast<unsigned>(i);
    const msghdr& message = messages_[slot].msg_hdr;
    const std::uint32_t bytes = messages_[slot].msg_len;
    const std::uint16_t peer = peers_.at(host_address(senders_[slot], message.msg_namelen));
    if (peer == UdpPeers::kNone) {
      ++outcome.strangers;
    } else if ((message.msg_flags & MSG_TRUNC) != 0 || bytes < kLeastDatagram) {
      ++outcome.refused;
    } else {
      rte_mbuf* packet = take(slot, peer);
      outcome.bytes += packet->pkt_len;
      packets[outcome.received++] = packet;
    }
    reset(slot);
  }
  left_some_ = came == static_cast<int>(ready) && outcome.received == 0;
  return outcome;
}

// The slot's datagram as a frame.
rte_mbuf* DatagramBurst::take(unsigned slot, std::uint16_t peer) {
  rte_mbuf* packet = packets_[slot];
  packets_[slot] = nullptr;
  const std::uint32_t bytes = kDatagramAt + messages_[slot].msg_len;
  packet->data_len = static_cast<std::uint16_t>(bytes);
  packet->pkt_len = bytes;
  std::uint16_t source_port = 0;
  std::memcpy(&source_port, rte_pktmbuf_mtod_offset(packet, const char*, kDatagramAt),
              sizeof source_port);
  const UdpPeers::OuterHeaders& headers = peers_.headers(peer);
  std::memcpy(rte_pktmbuf_mtod(packet, void*), headers.data(), headers.size());
  std::memcpy(rte_pktmbuf_mtod_offset(packet, char*, kSourcePortAt), &source_port,
              sizeof source_port);
  *rte_pktmbuf_mtod_offset(packet, std::uint8_t*, kTosAt) = marks_of(messages_[slot].msg_hdr);
  put16(packet, kIpLengthAt, bytes - kEthernetBytes);
  put16(packet, kUdpLengthAt, bytes - kSourcePortAt);
  auto* ip = rte_pktmbuf_mtod_offset(packet, rte_ipv4_hdr*, kEthernetBytes);
  ip->hdr_checksum = 0;
  ip->hdr_checksum = rte_ipv4_cksum(ip);
  return packet;
}

}  // namespace gradcube::dataplane
