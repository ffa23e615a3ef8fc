#include "protocol/path_probe.h"

#include <algorithm>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"

namespace gradcube::protocol {

using namespace frame_layout;

std::size_t write_path_probe(std::span<std::uint8_t> out, const LinkAddresses& addresses,
                             RoutingHeader routing, std::uint16_t source_port,
                             const PathProbeHeader& probe, const ServerKeys* keys) {
  routing.authenticated = keys != nullptr;
  const std::size_t bytes = path_probe_bytes(routing.hop_count, routing.authenticated);
  if (out.size() < bytes || !has_hops(routing)) return 0;
  std::uint8_t* const frame = out.data();
  std::fill_n(frame, bytes, std::uint8_t{0});
  std::uint8_t* const at = frame + store_prefix(frame, addresses, routing, source_port);
  store_type_and_lengths(frame, FrameType::path_probe, ip_sum(frame), bytes);
  store_little<std::uint32_t>(at + kProbeNumber, probe.number);
  at[kProbeFlags] = probe.answer ? kAnswerBit : 0;
  store_little<std::uint64_t>(at + kProbeLeft, probe.bits_per_second_left);
  seal(out.first(bytes), {}, keys);
  return bytes;
}

void lower_left(std::span<std::uint8_t> frame, const ParsedFrame& parsed,
                std::uint64_t bits_per_second, const ServerKeys* keys) {
  if (bits_per_second >= parsed.path_probe.bits_per_second_left) return;
  std::uint8_t* const at = frame.data() + kRoutingAt + routing_bytes(parsed.routing.hop_count);
  store_little<std::uint64_t>(at + kProbeLeft, bits_per_second);
  seal(frame.first(parsed.header_bytes), {}, keys);
}

}  // namespace gradcube::protocol
