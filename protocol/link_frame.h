// Frames that tell about links: a greeting, over the link itself; a path failure, from a relay to
// the source of a frame whose next hop is down; and path probes, by which the source of a flow
// learns what the links of a path have left (BCube source routing: BCube, section 4.1).
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | link 6 | greeting 30
//   | CRC 4 or MAC 8 | padding
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | number 4 | flags 2 | left 8
//   | CRC 4 or MAC 8
//
// A greeting may be padded, so that it shows what frames of that length do: the CRC or MAC covers
// the padding, whatever it is. A path failure has neither greeting nor padding. Both name a link by
// one of its ends, its level and the other end's digit.
//
// The source sends a probe over each path. Each server on the way lowers `left` to what its own two
// links on the path have left, and the destination sends the answer back over the same servers.
//
// All always carry their CRC or MAC, whatever the port: they are rare, and a wrong one would lead
// segments astray. Relays change what that of a probe covers: they check it before, and write it
// anew. So it finds what a link has damaged, and not what a relay's memory has; a wrong value leads
// to another path at worst. docs/protocol.md has the fields with their offsets.
//
// No call here allocates or blocks. Any thread may call anything.
#ifndef GRADCUBE_PROTOCOL_LINK_FRAME_H_
#define GRADCUBE_PROTOCOL_LINK_FRAME_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/mac.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

// Writes the headers, with the MAC by the own key, or without keys the CRC, and returns their
// length; the padding, which only a greeting has, follows them on the wire. Writes nothing and
// returns 0 if `out` is shorter, the padding is longer than kMaxPayloadBytes, or the hops are out
// of range.
std::size_t write_link_frame(std::span<std::uint8_t> out, FrameType type,
                             const LinkAddresses& addresses, const RoutingHeader& routing,
                             std::uint16_t source_port, const LinkHeader& link,
                             const ServerKeys* keys = nullptr,
                             std::span<const std::uint8_t> padding = {});

// The same for a path probe or its answer, which is the whole frame.
std::size_t write_path_probe(std::span<std::uint8_t> out, const LinkAddresses& addresses,
                             const RoutingHeader& routing, std::uint16_t source_port,
                             const PathProbeHeader& probe, const ServerKeys* keys = nullptr);

// What a relay does to a probe that parse_frame() has accepted and whose CRC or MAC is right:
// no more is left than this.
void lower_left(std::span<std::uint8_t> frame, const ParsedFrame& parsed,
                std::uint64_t bits_per_second, const ServerKeys* keys = nullptr);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_LINK_FRAME_H_
