// The few fields that a commodity switch and a receiving NIC read, at their fixed places in the
// first mbuf segment: Ethernet II, IPv4 without options, UDP.
//
// Frames are hostile: every function compares a length with the segment's before it uses it, or
// says what the caller must have checked. Pure functions; any thread that owns the packet.
#ifndef GRADCUBE_DATAPLANE_FABRIC_FRAME_FIELDS_H_
#define GRADCUBE_DATAPLANE_FABRIC_FRAME_FIELDS_H_

#include <array>
#include <cstdint>
#include <cstring>
#include <rte_byteorder.h>
#include <rte_mbuf.h>

#include "dataplane/host/packet_pool.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

inline constexpr std::uint32_t kMacBytes = 6;
inline constexpr std::uint32_t kEthernetBytes = 14;
inline constexpr std::uint32_t kIpv4Bytes = 20;
// Up to and including the UDP source port.
inline constexpr std::uint32_t kFlowFieldBytes = kEthernetBytes + kIpv4Bytes + 2;
// What a frame takes on the wire in addition to its own bytes: preamble 8, FCS 4, gap 12.
inline constexpr std::uint32_t kWireOverheadBytes = 24;
// A shorter frame (without FCS) is padded.
inline constexpr std::uint32_t kMinFrameBytes = 60;

// The size of a frame in a switch's memory.
inline std::uint32_t frame_bytes(const rte_mbuf* packet) {
  return packet->pkt_len < kMinFrameBytes ? kMinFrameBytes : packet->pkt_len;
}

inline bool has_ethernet_header(const rte_mbuf* packet) {
  return packet->data_len >= kEthernetBytes;
}

// A MAC as a number; the first byte is the most significant.
inline std::uint64_t mac_number(const std::array<std::uint8_t, kMacBytes>& mac) {
  std::uint64_t number = 0;
  for (const std::uint8_t byte : mac) number = number << 8 | byte;
  return number;
}

// That of the destination. The caller has checked has_ethernet_header().
inline std::uint64_t destination_mac(const rte_mbuf* packet) {
  std::uint64_t first_bytes = 0;
  std::memcpy(&first_bytes, rte_pktmbuf_mtod(packet, const char*), sizeof(first_bytes));
  return rte_be_to_cpu_64(first_bytes) >> 16;
}

inline std::uint16_t field16(const rte_mbuf* packet, std::uint32_t offset) {
  std::uint16_t field = 0;
  std::memcpy(&field, rte_pktmbuf_mtod_offset(packet, const char*, offset), sizeof(field));
  return rte_be_to_cpu_16(field);
}

// The caller may write to the segment, which is as long.
inline void put_field16(rte_mbuf* packet, std::uint32_t offset, std::uint32_t value) {
  const std::uint16_t field = rte_cpu_to_be_16(static_cast<std::uint16_t>(value));
  std::memcpy(rte_pktmbuf_mtod_offset(packet, char*, offset), &field, sizeof(field));
}

// The sender's thread. Frames that are not UDP over IPv4 belong to thread 0, as a NIC puts them on
// its first queue.
inline std::uint16_t thread_of(const rte_mbuf* packet) {
  constexpr std::uint32_t kEtherTypeOffset = 12;
  constexpr std::uint32_t kProtocolOffset = kEthernetBytes + 9;
  if (packet->data_len < kFlowFieldBytes) return 0;
  if (field16(packet, kEtherTypeOffset) != protocol::kEtherTypeIpv4) return 0;
  if (*rte_pktmbuf_mtod_offset(packet, const std::uint8_t*, kProtocolOffset) !=
      protocol::kProtocolUdp) {
    return 0;
  }
  return static_cast<std::uint16_t>(field16(packet, kEthernetBytes + kIpv4Bytes) -
                                    protocol::kFirstSourcePort);
}

// True if the frame's transport understands congestion marks (ECT).
bool understands_marks(const rte_mbuf* packet);

// Sets "congestion experienced" (CE) and updates the IPv4 header's checksum. The caller has
// checked understands_marks() and may_be_written().
void mark_congestion(rte_mbuf* packet);

// False if the bytes of the first segment may have another reader: an external buffer, an indirect
// packet, or a packet with more than one reference.
inline bool may_be_written(const rte_mbuf* packet) {
  return RTE_MBUF_DIRECT(packet) && rte_mbuf_refcnt_read(packet) == 1;
}

// How long a frame can be that lies in one packet of the pool's.
inline std::uint32_t frame_room(rte_mempool* pool) {
  return std::uint32_t{rte_pktmbuf_data_room_size(pool)} - RTE_PKTMBUF_HEADROOM;
}
inline bool holds_a_frame(const PacketPool& pool, std::uint32_t mtu) {
  return frame_room(pool.get()) >= mtu + kEthernetBytes;
}

// A copy of the whole frame in one segment from `pool`; nullptr if the pool is empty or its
// packets are too small. Does not change the original.
rte_mbuf* copy_frame(const rte_mbuf* packet, rte_mempool* pool);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_FRAME_FIELDS_H_
