// The wire format: Ethernet / IPv4 / UDP / Gradcube. docs/protocol.md has every field with its
// offset.
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | transport 28 | segment 14
//   | CRC 4 or MAC 8 | payload
//
// An acknowledgement or a probe has no segment header and no payload. A message, a frame that tells
// about a link, and a path probe have a header of their own instead of both (message_frame.h,
// link_frame.h). Gradcube's own fields are little-endian.
//
// Sending: a FrameTemplate is built once per flow and contains the constant fields; write() fills
// in the rest per packet, into the caller's buffer (an mbuf). Receiving: parse_frame() checks every
// field that can be checked without knowing the cluster, before anything is used, and returns why
// it refuses a frame. The engine checks the rest: job, epoch, addresses, thread and sequence, and
// it compares kind, root, type, operation and count with its own request.
//
// Source routing: the sender lists the hops, and each relay increments the index of the current
// hop. As in BCube, a hop crosses the switch of `level` to the neighbour whose digit at that level
// is `digit`.
//
// No call here allocates, blocks or keeps a reference. Any thread may call anything.
#ifndef GRADCUBE_PROTOCOL_WIRE_H_
#define GRADCUBE_PROTOCOL_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/frame_error.h"

namespace gradcube::protocol {

inline constexpr std::uint8_t kVersion = 9;
inline constexpr std::uint16_t kEtherTypeIpv4 = 0x0800;
inline constexpr std::uint8_t kProtocolUdp = 17;
inline constexpr std::uint16_t kUdpPort = 47330;  // destination port of every frame
// A sender's source port for thread 0; thread t has the t-th port after it. The port only steers a
// frame to a queue: a receiver accepts any.
inline constexpr std::uint16_t kFirstSourcePort = 49152;
inline constexpr unsigned kMaxHops = 8;
inline constexpr unsigned kThreadBits = 7;
inline constexpr unsigned kMaxThreads = 1U << kThreadBits;
// Frames of this thread carry messages between trainers. They are steered as those of thread 0.
inline constexpr unsigned kMailThread = kMaxThreads - 1;
// Those of the threads from this one on carry chunks of a hub, and are steered as those of thread
// 0, 1, ...
inline constexpr unsigned kFirstHubThread = 64;
inline constexpr unsigned kMaxHubThreads = kMailThread - kFirstHubThread;
inline constexpr unsigned kStepBits = 5;  // of a byte; the lane has the other three
inline constexpr unsigned kMaxFlowSteps = 1U << kStepBits;
inline constexpr unsigned kMaxLanes = 1U << (8 - kStepBits);

inline constexpr std::size_t kOuterHeaderBytes = 14 + 20 + 8;  // Ethernet, IPv4, UDP
inline constexpr std::size_t kTransportBytes = 28;
inline constexpr std::size_t kSegmentBytes = 14;
inline constexpr std::size_t kMessageBytes = 20;
inline constexpr std::size_t kLinkBytes = 6;
inline constexpr std::size_t kDigestBytes = 30;  // of a greeting, behind its link header
inline constexpr std::size_t kPathProbeBytes = 14;
inline constexpr std::size_t kCrcBytes = 4;
inline constexpr std::size_t kMacBytes = 8;

// What the headers end with (crc.h, mac.h).
constexpr std::size_t check_bytes(bool authenticated) {
  return authenticated ? kMacBytes : kCrcBytes;
}

constexpr std::size_t routing_bytes(unsigned hop_count) { return 6 + 2 * std::size_t{hop_count}; }

enum class FrameType : std::uint8_t {
  segment = 1,
  acknowledgement = 2,  // the transport header alone
  probe = 3,            // an acknowledgement that requests one in return (SendWindow::probe_owed)
  greeting = 4,         // a sign of life over a link: link_frame.h
  message = 5,          // a part of what one daemon tells another: message_frame.h
  path_probe = 6,       // asks what a path's links have left, or answers: link_frame.h
  path_failure = 7,     // a link that a relay cannot use: link_frame.h
};

// By type: of the headers between the hops and the CRC or MAC.
inline constexpr std::array<std::uint8_t, 8> kBytesBehindHops = {0,
                                                                 kTransportBytes + kSegmentBytes,
                                                                 kTransportBytes,
                                                                 kTransportBytes,
                                                                 kLinkBytes + kDigestBytes,
                                                                 kMessageBytes,
                                                                 kPathProbeBytes,
                                                                 kLinkBytes};

// Length of all headers, from Ethernet to the CRC or the MAC.
constexpr std::size_t header_bytes(FrameType type, unsigned hop_count, bool authenticated = false) {
  return kOuterHeaderBytes + routing_bytes(hop_count) +
         kBytesBehindHops[static_cast<std::size_t>(type)] + check_bytes(authenticated);
}

// Of one hop.
inline constexpr std::size_t kSegmentHeaderBytes = header_bytes(FrameType::segment, 1);
inline constexpr std::size_t kAcknowledgementHeaderBytes =
    header_bytes(FrameType::acknowledgement, 1);
inline constexpr std::size_t kMaxHeaderBytes = header_bytes(FrameType::segment, kMaxHops, true);
static_assert(kSegmentHeaderBytes == 96, "a one-hop segment carries at most 96 bytes of headers");

// What IPv4's 16-bit length leaves for the payload, for any number of hops.
inline constexpr std::size_t kMaxPayloadBytes = 65535 - (kMaxHeaderBytes - 14);

enum class Stage : std::uint8_t { aggregation = 0, broadcast = 1 };

// Host byte order: 10.0.0.1 is 0x0a000001.
struct LinkAddresses {
  std::array<std::uint8_t, 6> source_mac{};
  std::array<std::uint8_t, 6> destination_mac{};
  std::uint32_t source_ip = 0;
  std::uint32_t destination_ip = 0;
};

struct Hop {
  std::uint8_t level = 0;
  std::uint8_t digit = 0;

  friend bool operator==(const Hop&, const Hop&) = default;
};

struct RoutingHeader {
  std::uint16_t source = 0;  // server numbers, end to end
  std::uint16_t destination = 0;
  std::uint8_t hop_count = 1;
  std::uint8_t hop_index = 0;        // the hop that the frame is on, or has just made
  bool authenticated = false;        // the headers end with a MAC, not with a CRC
  std::array<Hop, kMaxHops> hops{};  // only the first hop_count are meaningful
};

// TransportHeader::backlog can say no more.
inline constexpr std::uint64_t kMostBacklog = 255;

struct TransportHeader {
  std::uint32_t job = 0;
  std::uint16_t epoch = 0;
  Stage stage = Stage::aggregation;
  std::uint8_t thread = 0;  // < kMaxThreads
  std::uint8_t lane = 0;    // < kMaxLanes
  std::uint8_t step = 0;    // < kMaxFlowSteps; of the flow: the aggregation step, in both stages
  // From `sequence` on, how many segments the sender has ready; 255 means 255 or more. It asks for
  // credit for as many. A segment that is sent again asks for nothing.
  std::uint8_t backlog = 0;
  // Of the other direction's acknowledged sequences, how many this receiver holds unread, at its
  // end: all below acknowledged - held are consumed. 255 means 255 or more.
  std::uint8_t held = 0;
  std::uint8_t credit = 0;  // the other direction may send below acknowledged + credit
  bool sent_again = false;  // this segment has been sent before
  // Of this segment; in the other types, of the next new segment.
  std::uint32_t sequence = 0;
  // The first sequence of the other direction that is missing here.
  std::uint32_t acknowledged = 0;
  std::uint64_t selective = 0;  // bit i: acknowledged + 1 + i has arrived
};

// Of what collective a segment is a part, as its sender sees it, for neighbours to compare with
// their own. Nothing here interprets it.
struct CollectiveSignature {
  std::uint32_t collective = 0;         // the low 32 bits of its number within the lane
  std::uint32_t count = 0;              // of elements, folded: the number itself below 2^32
  std::uint16_t root = 0;               // a rank; of an all-gather what it gathers; else 0
  std::uint8_t kind = 0;                // of the collective
  std::uint8_t type_and_operation = 0;  // element type | operation << 4

  friend bool operator==(const CollectiveSignature&, const CollectiveSignature&) = default;
};

struct SegmentHeader : CollectiveSignature {
  std::uint16_t length = 0;  // bytes of payload
};

// Of a frame that carries one fragment of a message.
struct MessageHeader {
  std::uint64_t incarnation = 0;  // of the sending daemon: another after each restart
  std::uint64_t number = 0;       // of the message, from 1; to each server its sender counts up
  std::uint8_t index = 0;         // of this fragment, from 0
  std::uint8_t fragments = 0;     // of the whole message
  std::uint16_t length = 0;       // bytes of this fragment
};

// What a server says of its settings, which are to be the same on all servers of a cluster.
struct SettingsDigest {
  std::uint32_t fingerprint = 0;  // of all that is to be the same
  std::uint16_t mtu = 0;
  std::uint64_t bits_per_second = 0;  // of the port; 0: as fast as it goes

  friend bool operator==(const SettingsDigest&, const SettingsDigest&) = default;
};

// What a greeting says of frames of full length, which something on the way may drop though it lets
// short ones pass (dataplane/links/full_frames.h).
struct FullFrameNews {
  bool sent = false;      // a padded greeting of this number has left before it
  bool wanted = false;    // the receiver is to send padded ones at once, and again until one comes
  bool unproven = false;  // none of the receiver's has come since the link was down or lost them
  bool lost = false;      // those of the receiver do not come, though its short ones do

  friend bool operator==(const FullFrameNews&, const FullFrameNews&) = default;
};

// Of a greeting and of a path failure: the link from `server` over its port of `level` to the
// neighbour with `digit`. In a greeting the server is its sender.
struct LinkHeader {
  std::uint16_t server = 0;
  std::uint8_t level = 0;
  std::uint8_t digit = 0;
  // Of a greeting only. No two greetings have the same number, not even those of a server that was
  // started anew; 0 in an announcement.
  std::uint64_t number = 0;
  std::uint64_t echo = 0;  // the last number that the sender has heard of the receiver; 0: none
  SettingsDigest settings{};
  FullFrameNews full_frames{};
};

// Of a path probe, and of its answer.
struct PathProbeHeader {
  static constexpr std::uint64_t kUnbounded = UINT64_MAX;

  std::uint32_t number = 0;  // chosen by its source; an answer repeats it
  bool answer = false;
  // The least that a link has left of those that the probe has passed; kUnbounded where none of
  // them has a rate. An answer repeats it.
  std::uint64_t bits_per_second_left = kUnbounded;
};

// True of a greeting that is for whoever hears it: the sender tells which port of its this is, and
// the only hop leads to the sender itself.
constexpr bool is_announcement(const RoutingHeader& routing) {
  return routing.source == routing.destination;
}

// True if the frame's current hop is its last: the server that received it is its destination.
constexpr bool destination_reached(const RoutingHeader& routing) {
  return routing.hop_index + 1U == routing.hop_count;
}

// The headers of one flow, complete except for the fields that change with every packet.
class FrameTemplate {
 public:
  // Keeps job, epoch, stage, thread, lane and step of `flow`.
  // Throws std::invalid_argument if the hops are out of range.
  FrameTemplate(const LinkAddresses& link, const RoutingHeader& routing,
                const TransportHeader& flow);

  // Writes all headers, with 0 in the field of the CRC or MAC, and returns their length; the
  // payload follows them on the wire. Ignores the fields of `transport` that the constructor kept.
  // A null segment makes an acknowledgement. Writes nothing and returns 0 if `out` is shorter than
  // the headers or the payload is longer than kMaxPayloadBytes.
  std::size_t write(std::span<std::uint8_t> out, const TransportHeader& transport,
                    const SegmentHeader* segment) const;

  // The same for a probe.
  std::size_t write_probe(std::span<std::uint8_t> out, const TransportHeader& transport) const;

 private:
  // Up to and including the transport header's lane and step, for the longest route.
  static constexpr std::size_t kPrefixBytes = 72;

  std::size_t write_frame(std::span<std::uint8_t> out, FrameType type,
                          const TransportHeader& transport, const SegmentHeader* segment) const;

  std::array<std::uint8_t, kPrefixBytes> prefix_{};
  std::uint16_t address_sum_ = 0;  // the IPv4 checksum's sum over all but the length
  std::uint8_t transport_offset_ = 0;
  bool authenticated_ = false;
};

// Builds a template and writes it once: for tests and set-up. Throws as FrameTemplate's constructor
// does.
std::size_t encode_frame(std::span<std::uint8_t> out, const LinkAddresses& link,
                         const RoutingHeader& routing, const TransportHeader& transport,
                         const SegmentHeader* segment);

struct ParsedFrame {
  RoutingHeader routing;
  TransportHeader transport;   // of a segment, an acknowledgement or a probe
  SegmentHeader segment;       // only if is_segment
  MessageHeader message;       // only of FrameType::message
  LinkHeader link;             // only of FrameType::greeting and path_failure
  PathProbeHeader path_probe;  // only of FrameType::path_probe
  FrameType type = FrameType::segment;
  bool is_segment = false;
  bool congestion_marked = false;  // a switch on the way set ECN's CE
  std::size_t header_bytes = 0;    // where the payload begins
  std::size_t payload_bytes = 0;   // without Ethernet's padding
};

// Reads and checks one frame. `contiguous` is its first part and must contain all headers;
// `frame_bytes` is the length of the whole frame, whose payload may be elsewhere. Padding after the
// UDP datagram is allowed and is not payload. Unless the result is FrameError::none, `out` is
// undefined. What the frame's type does not have stays in `out` as it was. This does not check the
// CRC or the MAC: see crc.h and mac.h.
FrameError parse_frame(std::span<const std::uint8_t> contiguous, std::size_t frame_bytes,
                       ParsedFrame& out);

// What a relay and a switch do to a frame that parse_frame() has accepted. They change nothing that
// the CRC or the MAC covers.
void advance_hop(std::span<std::uint8_t> frame);  // only where !destination_reached()
void readdress(std::span<std::uint8_t> frame, const LinkAddresses& link);
void mark_congestion(std::span<std::uint8_t> frame);  // ECN: CE

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_WIRE_H_
