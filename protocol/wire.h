// The wire format: Ethernet / IPv4 / UDP / Gradcube (docs/protocol.md has every field with its
// offset).
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | transport 26 | segment 16 | CRC 4 |
//   payload
//
// An acknowledgement and a probe have neither a segment header nor a payload. Gradcube's own fields
// are little-endian.
//
// Sending: a FrameTemplate is built once per flow and holds what does not change; write() fills in
// the rest per packet, into a buffer of the caller's (an mbuf). Receiving: parse_frame() checks
// every field that can be checked without knowing the cluster before anything is used, and says why
// it refuses. What only the cluster's knowledge can judge is handed on as it came: the engine
// checks job, epoch, addresses, thread and sequence, and compares type, operation and count with
// its own.
//
// Routing is by source: the sender lists the hops, and the current hop's index moves on at each
// relay. The routing's terms are BCube's: a hop crosses the switch of `level` to the neighbour
// whose digit at that level is `digit`.
//
// No call here allocates, blocks or keeps a reference. Everything is safe from any thread.
#ifndef GRADCUBE_PROTOCOL_WIRE_H_
#define GRADCUBE_PROTOCOL_WIRE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/frame_error.h"

namespace gradcube::protocol {

inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::uint16_t kUdpPort = 47330;  // destination port of every frame
inline constexpr std::uint16_t kFirstSourcePort =
    49152;  // source port of thread 0; RSS spreads threads by it
inline constexpr unsigned kMaxHops = 8;
inline constexpr unsigned kMaxThreads = 128;

inline constexpr std::size_t kOuterHeaderBytes = 14 + 20 + 8;  // Ethernet, IPv4, UDP
inline constexpr std::size_t kTransportBytes = 26;
inline constexpr std::size_t kSegmentBytes = 16;
inline constexpr std::size_t kCrcBytes = 4;

constexpr std::size_t routing_bytes(unsigned hop_count) { return 6 + 2 * std::size_t{hop_count}; }

// Length of all headers, from Ethernet to the CRC.
constexpr std::size_t header_bytes(unsigned hop_count, bool is_segment) {
  return kOuterHeaderBytes + routing_bytes(hop_count) + kTransportBytes +
         (is_segment ? kSegmentBytes : 0) + kCrcBytes;
}

inline constexpr std::size_t kSegmentHeaderBytes = header_bytes(1, true);  // of a one-hop segment
inline constexpr std::size_t kAcknowledgementHeaderBytes = header_bytes(1, false);
inline constexpr std::size_t kMaxHeaderBytes = header_bytes(kMaxHops, true);
static_assert(kSegmentHeaderBytes == 96, "a one-hop segment carries at most 96 bytes of headers");

// What IPv4's 16-bit length leaves for the payload, whatever the number of hops.
inline constexpr std::size_t kMaxPayloadBytes = 65535 - (kMaxHeaderBytes - 14);

enum class Stage : std::uint8_t { aggregation = 0, broadcast = 1 };

enum class FrameType : std::uint8_t {
  segment = 1,
  acknowledgement = 2,  // the transport header alone
  probe = 3,            // an acknowledgement that asks for one in return (SendWindow::probe_owed)
};

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
  std::array<Hop, kMaxHops> hops{};  // only the first hop_count have a meaning
};

struct TransportHeader {
  std::uint32_t job = 0;
  std::uint16_t epoch = 0;
  Stage stage = Stage::aggregation;
  std::uint8_t thread = 0;  // < kMaxThreads
  std::uint8_t backlog =
      0;  // segments ready at the sender beyond those sent; 255: that many or more
  std::uint32_t sequence = 0;  // of this segment; in the other types, the next one to be sent first
  std::uint32_t acknowledged = 0;  // the first sequence of the other direction that is missing here
  std::uint64_t selective = 0;     // bit i: acknowledged + 1 + i is here
  std::uint16_t credit = 0;  // the other direction may send sequences below acknowledged + credit
};

struct SegmentHeader {
  std::uint32_t collective = 0;
  std::uint8_t step = 0;
  std::uint8_t type_and_operation =
      0;                       // element type | operation << 4; compared, not interpreted, here
  std::uint16_t length = 0;    // bytes of payload
  std::uint32_t position = 0;  // in its stream, in the units of the plan
  std::uint32_t count = 0;  // elements of the whole collective, low 32 bits: shows a disagreement
};

// True where the frame's current hop is its last: what has arrived here over that hop is for this
// server.
constexpr bool destination_reached(const RoutingHeader& routing) {
  return routing.hop_index + 1U == routing.hop_count;
}

// The headers of one flow, ready but for what changes with every packet.
class FrameTemplate {
 public:
  // Of `flow`, the job, epoch, stage and thread are kept.
  // Throws std::invalid_argument if the hops or the thread are out of their range.
  FrameTemplate(const LinkAddresses& link, const RoutingHeader& routing,
                const TransportHeader& flow);

  // Writes all headers, with 0 in the CRC field, and returns their length; the payload follows them
  // on the wire. Of `transport`, what the constructor kept is ignored. A null segment makes an
  // acknowledgement. Returns 0, and writes nothing, if `out` is shorter than the headers or the
  // payload longer than kMaxPayloadBytes.
  std::size_t write(std::span<std::uint8_t> out, const TransportHeader& transport,
                    const SegmentHeader* segment) const;

  // The same for a probe.
  std::size_t write_probe(std::span<std::uint8_t> out, const TransportHeader& transport) const;

 private:
  // Up to and including the transport header's flow byte, for the longest route.
  static constexpr std::size_t kPrefixBytes = 72;

  std::size_t write_frame(std::span<std::uint8_t> out, FrameType type,
                          const TransportHeader& transport, const SegmentHeader* segment) const;

  std::array<std::uint8_t, kPrefixBytes> prefix_{};
  std::uint32_t address_sum_ = 0;  // the IPv4 checksum's sum over all but the length
  std::uint8_t transport_offset_ = 0;
};

// A template used once: for tests and set-up. Throws as FrameTemplate's constructor does.
std::size_t encode_frame(std::span<std::uint8_t> out, const LinkAddresses& link,
                         const RoutingHeader& routing, const TransportHeader& transport,
                         const SegmentHeader* segment);

struct ParsedFrame {
  RoutingHeader routing;
  TransportHeader transport;
  SegmentHeader segment;  // only if is_segment
  FrameType type = FrameType::segment;
  bool is_segment = false;
  bool congestion_marked = false;  // a switch on the way set ECN's CE
  std::size_t header_bytes = 0;    // where the payload begins
  std::size_t payload_bytes = 0;   // without Ethernet's padding
};

// Reads and checks one frame. `contiguous` is its first part and holds all headers at least;
// `frame_bytes` is the length of the whole frame, whose payload may lie elsewhere. Padding after
// the UDP datagram is allowed, and is not payload. Unless the result is FrameError::none, `out` has
// no meaning. The CRC is not checked here: see crc.h.
FrameError parse_frame(std::span<const std::uint8_t> contiguous, std::size_t frame_bytes,
                       ParsedFrame& out);

// What a relay and a switch do to a frame that parse_frame() has accepted. None of it touches what
// the CRC covers.
void advance_hop(std::span<std::uint8_t> frame);  // only where !destination_reached()
void readdress(std::span<std::uint8_t> frame, const LinkAddresses& link);
void mark_congestion(std::span<std::uint8_t> frame);  // ECN: CE

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_WIRE_H_
