#include "protocol/link_frame.h"

#include <algorithm>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"

namespace gradcube::protocol {

using namespace frame_layout;

namespace {

std::uint16_t bits_of(const FullFrameNews& news) {
  return static_cast<std::uint16_t>(
      (news.sent ? kFullSentBit : 0) | (news.wanted ? kFullWantedBit : 0) |
      (news.unproven ? kFullUnprovenBit : 0) | (news.lost ? kFullLostBit : 0));
}

}  // namespace

std::size_t write_link_frame(std::span<std::uint8_t> out, FrameType type,
                             const LinkAddresses& addresses, RoutingHeader routing,
                             std::uint16_t source_port, const LinkHeader& link,
                             const ServerKeys* keys, std::span<const std::uint8_t> padding) {
  routing.authenticated = keys != nullptr;
  const bool is_greeting = type == FrameType::greeting;
  const std::size_t bytes =
      link_header_bytes(routing.hop_count, is_greeting, routing.authenticated);
  if (out.size() < bytes || padding.size() > kMaxPayloadBytes || !has_hops(routing)) return 0;
  std::uint8_t* const frame = out.data();
  std::fill_n(frame, bytes, std::uint8_t{0});
  std::uint8_t* const at = frame + store_prefix(frame, addresses, routing, source_port);
  store_type_and_lengths(frame, type, ip_sum(frame), bytes + padding.size());
  store_little<std::uint16_t>(at + kLinkServer, link.server);
  at[kLinkLevel] = link.level;
  at[kLinkDigit] = link.digit;
  if (is_greeting) {
    store_little<std::uint16_t>(at + kFullFrames, bits_of(link.full_frames));
    store_little<std::uint32_t>(at + kFingerprint, link.settings.fingerprint);
    store_little<std::uint64_t>(at + kRate, link.settings.bits_per_second);
    store_little<std::uint16_t>(at + kMtu, link.settings.mtu);
    store_little<std::uint64_t>(at + kGreetingNumber, link.number);
    store_little<std::uint64_t>(at + kGreetingEcho, link.echo);
  }
  seal(out.first(bytes), padding, keys);
  return bytes;
}

}  // namespace gradcube::protocol
