#include "protocol/link_frame.h"

#include <algorithm>

#include "protocol/frame_layout.h"
#include "protocol/header_fields.h"

namespace gradcube::protocol {

using namespace frame_layout;

namespace {

// write_header(writer) writes what the frame's type has behind the hops.
std::size_t write_sealed(std::span<std::uint8_t> out, FrameType type,
                         const LinkAddresses& addresses, RoutingHeader routing,
                         std::uint16_t source_port, const ServerKeys* keys,
                         std::span<const std::uint8_t> padding, auto&& write_header) {
  routing.authenticated = keys != nullptr;
  const std::size_t bytes = header_bytes(type, routing.hop_count, routing.authenticated);
  if (out.size() < bytes || padding.size() > kMaxPayloadBytes || !has_hops(routing)) return 0;
  std::uint8_t* const frame = out.data();
  std::fill_n(frame, bytes, std::uint8_t{0});
  HeaderWriter write{frame + store_prefix(frame, addresses, routing, source_port)};
  store_type_and_lengths(frame, type, ip_sum(frame), bytes + padding.size());
  write_header(write);
  seal(out.first(bytes), padding, keys);
  return bytes;
}

}  // namespace

std::size_t write_link_frame(std::span<std::uint8_t> out, FrameType type,
                             const LinkAddresses& addresses, const RoutingHeader& routing,
                             std::uint16_t source_port, const LinkHeader& link,
                             const ServerKeys* keys, std::span<const std::uint8_t> padding) {
  return write_sealed(out, type, addresses, routing, source_port, keys, padding,
                      [&](HeaderWriter& write) {
                        fields(write, link);
                        if (type == FrameType::greeting) greeting_fields(write, link);
                      });
}

std::size_t write_path_probe(std::span<std::uint8_t> out, const LinkAddresses& addresses,
                             const RoutingHeader& routing, std::uint16_t source_port,
                             const PathProbeHeader& probe, const ServerKeys* keys) {
  return write_sealed(out, FrameType::path_probe, addresses, routing, source_port, keys, {},
                      [&](HeaderWriter& write) { fields(write, probe); });
}

void lower_left(std::span<std::uint8_t> frame, const ParsedFrame& parsed,
                std::uint64_t bits_per_second, const ServerKeys* keys) {
  PathProbeHeader probe = parsed.path_probe;
  if (bits_per_second >= probe.bits_per_second_left) return;
  probe.bits_per_second_left = bits_per_second;
  HeaderWriter write{frame.data() + kRoutingAt + routing_bytes(parsed.routing.hop_count)};
  fields(write, probe);
  seal(frame.first(parsed.header_bytes), {}, keys);
}

}  // namespace gradcube::protocol
