#include "protocol/wire.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"
#include "protocol/header_fields.h"

namespace gradcube::protocol {

using namespace frame_layout;

namespace {

constexpr std::uint8_t kEcnMask = 0x03;
constexpr std::uint8_t kEcnMarked = 0x03;  // CE

void renew_ip_checksum(std::uint8_t* frame) {
  store_native<std::uint16_t>(frame + kIpChecksumAt, 0);
  store_native<std::uint16_t>(frame + kIpChecksumAt, static_cast<std::uint16_t>(~ip_sum(frame)));
}

FrameError check_link(const std::uint8_t* frame) {
  if (load_network<std::uint16_t>(frame + kEtherTypeAt) != kEtherTypeIpv4 ||
      frame[kIpAt] != kIpVersionAndWords || frame[kIpProtocolAt] != kProtocolUdp) {
    return FrameError::not_gradcube;
  }
  if (ip_sum(frame) != 0xffffU) return FrameError::bad_checksum;
  if ((load_network<std::uint16_t>(frame + kIpFragmentAt) & ~kDoNotFragment) != 0) {
    return FrameError::fragmented;
  }
  if (load_network<std::uint16_t>(frame + kUdpDestinationAt) != kUdpPort) {
    return FrameError::not_gradcube;
  }
  if (load_network<std::uint16_t>(frame + kUdpChecksumAt) != 0) return FrameError::bad_checksum;
  return FrameError::none;
}

FrameError parse_routing(const std::uint8_t* frame, ParsedFrame& out) {
  const std::uint8_t first = frame[kRoutingAt];
  if (first >> 4 != kVersion) return FrameError::bad_version;
  const std::uint8_t type = first & 0x0f;
  if (type < static_cast<std::uint8_t>(FrameType::segment) ||
      type > static_cast<std::uint8_t>(FrameType::path_failure)) {
    return FrameError::bad_type;
  }
  out.type = static_cast<FrameType>(type);
  out.is_segment = out.type == FrameType::segment;
  out.routing.hop_count = frame[kHopsAt] >> 4;
  out.routing.hop_index = frame[kHopsAt] & kHopIndexMask;
  out.routing.authenticated = (frame[kHopsAt] & kAuthenticatedBit) != 0;
  if (!has_hops(out.routing)) return FrameError::bad_hops;
  out.routing.source = load_little<std::uint16_t>(frame + kSourceAt);
  out.routing.destination = load_little<std::uint16_t>(frame + kDestinationAt);
  if (out.routing.source == out.routing.destination && out.type != FrameType::greeting) {
    return FrameError::bad_address;
  }
  return FrameError::none;
}

// Mostly in one copy of constant length: what stands behind the last hop means nothing.
void parse_hops(const std::uint8_t* at, std::size_t readable, RoutingHeader& routing) {
  static_assert(sizeof routing.hops == 2 * kMaxHops);
  if (readable >= sizeof routing.hops) {
    std::memcpy(routing.hops.data(), at, sizeof routing.hops);
    return;
  }
  for (unsigned hop = 0; hop < routing.hop_count; ++hop, at += 2) {
    routing.hops[hop] = Hop{at[0], at[1]};
  }
}

// What follows the routing header. The padding of a greeting may have any length here: what is full
// only the cluster knows.
FrameError parse_behind_hops(const std::uint8_t* frame, ParsedFrame& out) {
  HeaderReader read{frame + kRoutingAt + routing_bytes(out.routing.hop_count)};
  std::size_t payload_bytes = 0;
  if (out.type <= FrameType::probe) {
    flow_fields(read, out.transport);
    fields(read, out.transport);
    if (out.is_segment) {
      fields(read, out.segment);
      payload_bytes = out.segment.length;
    }
  } else if (out.type == FrameType::message) {
    fields(read, out.message);
    payload_bytes = out.message.length;
  } else if (out.type == FrameType::path_probe) {
    fields(read, out.path_probe);
  } else {
    fields(read, out.link);
    if (out.type == FrameType::greeting) {
      greeting_fields(read, out.link);
      payload_bytes = out.payload_bytes;
    }
  }
  return out.payload_bytes == payload_bytes ? FrameError::none : FrameError::bad_length;
}

unsigned steered_as(unsigned thread) {
  if (thread == kMailThread) return 0;
  return thread < kFirstHubThread ? thread : thread - kFirstHubThread;
}

}  // namespace

FrameTemplate::FrameTemplate(const LinkAddresses& link, const RoutingHeader& routing,
                             const TransportHeader& flow) {
  assert(flow.thread < kMaxThreads && flow.lane < kMaxLanes && flow.step < kMaxFlowSteps);
  std::uint8_t* const frame = prefix_.data();
  transport_offset_ = static_cast<std::uint8_t>(
      store_prefix(frame, link, routing,
                   static_cast<std::uint16_t>(kFirstSourcePort + steered_as(flow.thread))));
  authenticated_ = routing.authenticated;
  address_sum_ = ip_sum(frame);
  HeaderWriter write{frame + transport_offset_};
  flow_fields(write, flow);
}

std::size_t FrameTemplate::write(std::span<std::uint8_t> out, const TransportHeader& transport,
                                 const SegmentHeader* segment) const {
  return write_frame(out, segment != nullptr ? FrameType::segment : FrameType::acknowledgement,
                     transport, segment);
}

std::size_t FrameTemplate::write_probe(std::span<std::uint8_t> out,
                                       const TransportHeader& transport) const {
  return write_frame(out, FrameType::probe, transport, nullptr);
}

std::size_t FrameTemplate::write_frame(std::span<std::uint8_t> out, FrameType type,
                                       const TransportHeader& transport,
                                       const SegmentHeader* segment) const {
  const std::size_t check = check_bytes(authenticated_);
  const std::size_t headers =
      transport_offset_ + kTransportBytes + (segment != nullptr ? kSegmentBytes : 0) + check;
  const std::size_t payload = segment != nullptr ? segment->length : 0;
  if (out.size() < headers || payload > kMaxPayloadBytes) return 0;
  std::uint8_t* const frame = out.data();
  // The shortest frame is longer than the prefix, so the copy can have a constant length. The
  // fields below overwrite what it writes too much.
  static_assert(kAcknowledgementHeaderBytes >= kPrefixBytes);
  std::memcpy(frame, prefix_.data(), kPrefixBytes);
  store_type_and_lengths(frame, type, address_sum_, headers + payload);
  HeaderWriter write{frame + transport_offset_ + kFlowBytes};
  fields(write, transport);
  if (segment != nullptr) fields(write, *segment);
  std::memset(write.at, 0, check);
  return headers;
}

std::size_t encode_frame(std::span<std::uint8_t> out, const LinkAddresses& link,
                         const RoutingHeader& routing, const TransportHeader& transport,
                         const SegmentHeader* segment) {
  return FrameTemplate(link, routing, transport).write(out, transport, segment);
}

FrameError parse_frame(std::span<const std::uint8_t> contiguous, std::size_t frame_bytes,
                       ParsedFrame& out) {
  const std::size_t readable = std::min(contiguous.size(), frame_bytes);
  const std::uint8_t* const frame = contiguous.data();
  if (readable < kFirstHopAt) return FrameError::too_short;
  if (const FrameError error = check_link(frame); error != FrameError::none) return error;
  const std::size_t ip_length = load_network<std::uint16_t>(frame + kIpLengthAt);
  const std::size_t udp_length = load_network<std::uint16_t>(frame + kUdpLengthAt);
  if (kIpAt + ip_length > frame_bytes || udp_length + (kUdpAt - kIpAt) != ip_length) {
    return FrameError::bad_length;
  }
  if (const FrameError error = parse_routing(frame, out); error != FrameError::none) return error;
  const std::size_t headers =
      header_bytes(out.type, out.routing.hop_count, out.routing.authenticated);
  if (readable < headers) return FrameError::too_short;
  if (kUdpAt + udp_length < headers) return FrameError::bad_length;
  parse_hops(frame + kFirstHopAt, readable - kFirstHopAt, out.routing);
  out.header_bytes = headers;
  out.payload_bytes = kUdpAt + udp_length - headers;
  out.congestion_marked = (frame[kIpTosAt] & kEcnMask) == kEcnMarked;
  return parse_behind_hops(frame, out);
}

void advance_hop(std::span<std::uint8_t> frame) {
  frame[kHopsAt] = static_cast<std::uint8_t>(frame[kHopsAt] + 1);
}

void readdress(std::span<std::uint8_t> frame, const LinkAddresses& link) {
  store_link(frame.data(), link);
  renew_ip_checksum(frame.data());
}

void mark_congestion(std::span<std::uint8_t> frame) {
  frame[kIpTosAt] = static_cast<std::uint8_t>(frame[kIpTosAt] | kEcnMarked);
  renew_ip_checksum(frame.data());
}

}  // namespace gradcube::protocol
