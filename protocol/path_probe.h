// Path probes: how the source of a flow learns what the links of a path have left (BCube source
// routing: BCube, section 4.1).
//
//   Ethernet 14 | IPv4 20 | UDP 8 | routing 6 + 2 per hop | number 4 | flags 2 | left 8
//   | CRC 4 or MAC 8
//
// The source sends a probe over each path. Each server on the way lowers `left` to what its own two
// links on the path have left, and the destination sends the answer back over the same servers.
// docs/protocol.md has the fields with their offsets.
//
// Both always carry their CRC or MAC, whatever the port. Relays change what it covers: they check
// it before, and write it anew. So it finds what a link has damaged, and not what a relay's memory
// has; a wrong value leads to another path at worst.
//
// No call here allocates or blocks. Any thread may call anything.
#ifndef GRADCUBE_PROTOCOL_PATH_PROBE_H_
#define GRADCUBE_PROTOCOL_PATH_PROBE_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "protocol/mac.h"
#include "protocol/wire.h"

namespace gradcube::protocol {

// Writes the whole frame, with its MAC by the own key, or without keys its CRC, and returns its
// length. Writes nothing and returns 0 if `out` is shorter, or the hops are out of range.
std::size_t write_path_probe(std::span<std::uint8_t> out, const LinkAddresses& addresses,
                             RoutingHeader routing, std::uint16_t source_port,
                             const PathProbeHeader& probe, const ServerKeys* keys = nullptr);

// What a relay does to a probe that parse_frame() has accepted and whose CRC or MAC is right:
// no more is left than this.
void lower_left(std::span<std::uint8_t> frame, const ParsedFrame& parsed,
                std::uint64_t bits_per_second, const ServerKeys* keys = nullptr);

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_PATH_PROBE_H_
