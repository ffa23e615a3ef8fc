// Frames that tell about links: a greeting, over the link itself, and a path failure, from a relay
// to the source of a frame whose next hop is down.
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | link 6 | greeting 30
//   | CRC 4 or MAC 8 | padding
//
// A greeting may be padded, so that it shows what frames of that length do: the CRC or MAC covers
// the padding, whatever it is. A path failure has neither greeting nor padding. Both name a link by
// one of its ends, its level and the other end's digit. They always carry their CRC or MAC,
// whatever the port: they are rare, and a wrong one would lead segments astray. docs/protocol.md
// has the fields with their offsets.
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
                             const LinkAddresses& addresses, RoutingHeader routing,
                             std::uint16_t source_port, const LinkHeader& link,
                             const ServerKeys* keys = nullptr,
                             std::span<const std::uint8_t> padding = {});

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_LINK_FRAME_H_
