// What of a frame travels in a datagram: all from its UDP header on. The rest follows from who
// sends it to whom. A frame that is longer than a datagram travels in fragments, one in each: so
// what a frame costs does not depend on how short the datagrams are that the network carries.
//
//   frame:     Ethernet 14 | IPv4 20 | source port 2, destination 2, length 2, checksum 2 | body
//   datagram:                          source port 2, number 2, length 2, place 2 | a part of body
//
// The source port names the thread that the frame is for, and stands in each fragment; the length
// is the frame's. The other two fields say nothing in a frame. They give room for the number of the
// frame, which its socket counts, and for the fragment's place: which one it is, and of how many.
//
// All fragments of a frame carry as many bytes of its body; what the last one has not is filled up.
// So frames of one length make datagrams of one length, which the kernel takes in one piece
// (datagram_trains.h).
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_

#include <algorithm>
#include <cstdint>

#include "dataplane/fabric/frame_fields.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

// Offsets in a frame.
inline constexpr std::uint32_t kTosAt = kEthernetBytes + 1;
inline constexpr std::uint32_t kIpLengthAt = kEthernetBytes + 2;
inline constexpr std::uint32_t kDatagramAt = kEthernetBytes + kIpv4Bytes;
inline constexpr std::uint32_t kSourcePortAt = kDatagramAt;
inline constexpr std::uint32_t kNumberAt = kDatagramAt + 2;
inline constexpr std::uint32_t kUdpLengthAt = kDatagramAt + 4;
inline constexpr std::uint32_t kPlaceAt = kDatagramAt + 6;
inline constexpr std::uint32_t kBodyAt = protocol::kOuterHeaderBytes;

inline constexpr std::uint32_t kFragmentHeaderBytes = kBodyAt - kDatagramAt;
inline constexpr unsigned kMostFragments = 7;

// The headers of a datagram's IP packet, with that of its fragment.
constexpr std::uint32_t datagram_headers(bool is_v6) {
  constexpr std::uint32_t kUdpBytes = 8;
  return (is_v6 ? 40 : kIpv4Bytes) + kUdpBytes + kFragmentHeaderBytes;
}

// Bytes of a frame's body that a datagram carries whose IP packet has datagram_mtu bytes.
constexpr std::uint32_t most_of_body(std::uint32_t datagram_mtu, bool is_v6) {
  return datagram_mtu - datagram_headers(is_v6);
}

// The longest IP packet of frames. Where ports keep to a rate, a frame is one datagram: links take
// theirs one by one then, and nothing is won. Else it is as many full ones as make some 9000 bytes,
// beyond which a frame costs little less for each byte.
constexpr std::uint32_t mtu_of_frames(std::uint32_t datagram_mtu, bool is_v6, bool has_rate) {
  constexpr std::uint32_t kLongest = 9000;
  const std::uint32_t fragments =
      has_rate ? 1 : std::clamp(kLongest / datagram_mtu, 1U, kMostFragments);
  return kBodyAt - kEthernetBytes + fragments * most_of_body(datagram_mtu, is_v6);
}

// What each fragment of a body carries, but the last.
constexpr std::uint32_t bytes_of_fragment(std::uint32_t body, std::uint32_t fragments) {
  return (body + fragments - 1) / fragments;
}

// Of the byte that IPv4 calls TOS and IPv6 the traffic class, the congestion marks: nothing else of
// it is carried.
inline constexpr std::uint8_t kEcnBits = 0x3;
inline constexpr std::uint8_t kUnderstandsMarks = 0x2;  // ECT(0), as all frames begin

// What leaves at once, and how much of it as one train: older kernels cut 64, and count the headers
// of the whole train among their bytes.
inline constexpr unsigned kMostDatagrams = 384;
inline constexpr unsigned kLongestTrain = 63;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_
