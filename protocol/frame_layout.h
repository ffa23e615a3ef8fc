// Where the headers of a frame are, and how those that all types share are written: Ethernet, IPv4,
// UDP, routing. For the .cc files of this folder alone.
//
// The callers have checked that the frame is long enough.
#ifndef GRADCUBE_PROTOCOL_FRAME_LAYOUT_H_
#define GRADCUBE_PROTOCOL_FRAME_LAYOUT_H_

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "protocol/bytes.h"
#include "protocol/wire.h"

namespace gradcube::protocol::frame_layout {

// Offsets from the start of the frame.
inline constexpr std::size_t kEtherTypeAt = 12;
inline constexpr std::size_t kIpAt = 14;
inline constexpr std::size_t kIpTosAt = kIpAt + 1;
inline constexpr std::size_t kIpLengthAt = kIpAt + 2;
inline constexpr std::size_t kIpFragmentAt = kIpAt + 6;
inline constexpr std::size_t kIpTtlAt = kIpAt + 8;
inline constexpr std::size_t kIpProtocolAt = kIpAt + 9;
inline constexpr std::size_t kIpChecksumAt = kIpAt + 10;
inline constexpr std::size_t kIpSourceAt = kIpAt + 12;
inline constexpr std::size_t kIpDestinationAt = kIpAt + 16;
inline constexpr std::size_t kUdpAt = kIpAt + 20;
inline constexpr std::size_t kUdpDestinationAt = kUdpAt + 2;
inline constexpr std::size_t kUdpLengthAt = kUdpAt + 4;
inline constexpr std::size_t kUdpChecksumAt = kUdpAt + 6;
inline constexpr std::size_t kRoutingAt = kOuterHeaderBytes;
inline constexpr std::size_t kHopsAt = kRoutingAt + 1;
inline constexpr std::uint8_t kHopIndexMask = 0x07;
inline constexpr std::uint8_t kAuthenticatedBit = 0x08;
inline constexpr std::size_t kSourceAt = kRoutingAt + 2;
inline constexpr std::size_t kDestinationAt = kRoutingAt + 4;
inline constexpr std::size_t kFirstHopAt = kRoutingAt + 6;

inline constexpr std::uint8_t kIpVersionAndWords = 0x45;
inline constexpr std::uint8_t kEcnCapable = 0x02;  // ECT(0)
inline constexpr std::uint16_t kDoNotFragment = 0x4000;
inline constexpr std::uint8_t kTimeToLive = 64;

// A one's-complement sum in 16 bits. It is that of the bytes as they stand, in whatever order the
// host has them: such a sum does not mind.
inline std::uint16_t fold(std::uint64_t sum) {
  sum = (sum & 0xffffU) + (sum >> 16 & 0xffffU) + (sum >> 32);
  sum = (sum & 0xffffU) + (sum >> 16);
  return static_cast<std::uint16_t>(sum + (sum >> 16));
}

// That of the IPv4 header.
inline std::uint16_t ip_sum(const std::uint8_t* frame) {
  std::uint64_t sum = 0;
  for (std::size_t at = kIpAt; at < kUdpAt; at += 4) sum += load_native<std::uint32_t>(frame + at);
  return fold(sum);
}

inline void store_link(std::uint8_t* frame, const LinkAddresses& link) {
  std::memcpy(frame, link.destination_mac.data(), link.destination_mac.size());
  std::memcpy(frame + 6, link.source_mac.data(), link.source_mac.size());
  store_network<std::uint32_t>(frame + kIpSourceAt, link.source_ip);
  store_network<std::uint32_t>(frame + kIpDestinationAt, link.destination_ip);
}

inline bool has_hops(const RoutingHeader& routing) {
  return routing.hop_count != 0 && routing.hop_count <= kMaxHops &&
         routing.hop_index < routing.hop_count;
}

// Everything up to the last hop but the type, the lengths and IPv4's checksum, into zeroed bytes.
// Returns how many they are. Throws std::invalid_argument if the hops are out of range.
inline std::size_t store_prefix(std::uint8_t* frame, const LinkAddresses& link,
                                const RoutingHeader& routing, std::uint16_t source_port) {
  if (!has_hops(routing)) {
    throw std::invalid_argument(
        "a route must have 1 to 8 hops, and the current hop must be one of them");
  }
  store_link(frame, link);
  store_network<std::uint16_t>(frame + kEtherTypeAt, kEtherTypeIpv4);
  frame[kIpAt] = kIpVersionAndWords;
  frame[kIpTosAt] = kEcnCapable;
  store_network<std::uint16_t>(frame + kIpFragmentAt, kDoNotFragment);
  frame[kIpTtlAt] = kTimeToLive;
  frame[kIpProtocolAt] = kProtocolUdp;
  store_network<std::uint16_t>(frame + kUdpAt, source_port);
  store_network<std::uint16_t>(frame + kUdpDestinationAt, kUdpPort);
  frame[kHopsAt] = static_cast<std::uint8_t>(routing.hop_count << 4 | routing.hop_index |
                                             (routing.authenticated ? kAuthenticatedBit : 0));
  store_little<std::uint16_t>(frame + kSourceAt, routing.source);
  store_little<std::uint16_t>(frame + kDestinationAt, routing.destination);
  std::uint8_t* at = frame + kFirstHopAt;
  for (unsigned hop = 0; hop < routing.hop_count; ++hop, at += 2) {
    at[0] = routing.hops[hop].level;
    at[1] = routing.hops[hop].digit;
  }
  return static_cast<std::size_t>(at - frame);
}

// The rest of it. `address_sum` is ip_sum() of the prefix; `frame_bytes` counts the payload too.
inline void store_type_and_lengths(std::uint8_t* frame, FrameType type, std::uint16_t address_sum,
                                   std::size_t frame_bytes) {
  store_network<std::uint16_t>(frame + kIpLengthAt,
                               static_cast<std::uint16_t>(frame_bytes - kIpAt));
  const std::uint32_t sum = address_sum + load_native<std::uint16_t>(frame + kIpLengthAt);
  store_native<std::uint16_t>(frame + kIpChecksumAt,
                              static_cast<std::uint16_t>(~(sum + (sum >> 16))));
  store_network<std::uint16_t>(frame + kUdpLengthAt,
                               static_cast<std::uint16_t>(frame_bytes - kUdpAt));
  frame[kRoutingAt] = static_cast<std::uint8_t>(kVersion << 4 | static_cast<std::uint8_t>(type));
}

}  // namespace gradcube::protocol::frame_layout

#endif  // GRADCUBE_PROTOCOL_FRAME_LAYOUT_H_
