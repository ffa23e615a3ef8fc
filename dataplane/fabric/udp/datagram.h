// What of a frame travels in a datagram: its UDP source port, which names the thread that it is
// for, and all behind the UDP header. The rest follows from who sends it to whom.
//
//     Ethernet 14 | IPv4 20 | UDP 8: source port 2, destination port 2, length 2, checksum 2 | ...
//                                                                       datagram from here on
//
// The checksum is 0 in all frames, so the source port takes its place while the frame travels: the
// datagram lies in one piece, and nothing is copied.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_

#include <cstdint>

#include "dataplane/fabric/frame_fields.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

// Offsets in a frame.
inline constexpr std::uint32_t kTosAt = kEthernetBytes + 1;
inline constexpr std::uint32_t kIpLengthAt = kEthernetBytes + 2;
inline constexpr std::uint32_t kSourcePortAt = kEthernetBytes + kIpv4Bytes;
inline constexpr std::uint32_t kUdpLengthAt = kSourcePortAt + 4;
inline constexpr std::uint32_t kUdpChecksumAt = kSourcePortAt + 6;
inline constexpr std::uint32_t kDatagramAt = kUdpChecksumAt;
static_assert(kDatagramAt + 2 == protocol::kOuterHeaderBytes);

inline constexpr std::uint32_t kLeastDatagram = protocol::kOuterHeaderBytes - kDatagramAt;
// By so much the IP packet of a datagram is longer than that of its frame.
inline constexpr std::uint32_t kLongerInIpv4 = kLeastDatagram;
inline constexpr std::uint32_t kLongerInIpv6 = kLeastDatagram + 20;

// Of the byte that IPv4 calls TOS and IPv6 the traffic class, the congestion marks: nothing else of
// it is carried.
inline constexpr std::uint8_t kEcnBits = 0x3;
inline constexpr std::uint8_t kUnderstandsMarks = 0x2;  // ECT(0), as all frames begin

// What leaves at once, and how much of it as one train: older kernels cut 64, and count the headers
// of the whole train among their bytes.
inline constexpr unsigned kMostDatagrams = 256;
inline constexpr unsigned kLongestTrain = 63;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_DATAGRAM_H_
