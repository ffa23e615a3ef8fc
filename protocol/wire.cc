#include "protocol/wire.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "protocol/bytes.h"
#include "protocol/frame_layout.h"

namespace gradcube::protocol {

using namespace frame_layout;

namespace {

using std::uint16_t;
using std::uint32_t;
using std::uint64_t;
using std::uint8_t;

// Offsets in the transport header.
constexpr std::size_t kJob = 0;
constexpr std::size_t kEpoch = 4;
constexpr std::size_t kFlow = 6;
constexpr std::size_t kLaneAndStep = 7;
constexpr std::size_t kBacklog = 8;
constexpr std::size_t kHeld = 9;
constexpr std::size_t kCredit = 10;
constexpr std::size_t kFlags = 11;
constexpr std::size_t kSequence = 12;
constexpr std::size_t kAcknowledged = 16;
constexpr std::size_t kSelective = 20;

// Offsets in the segment header.
constexpr std::size_t kCollective = 0;
constexpr std::size_t kCount = 4;
constexpr std::size_t kLength = 8;
constexpr std::size_t kRoot = 10;
constexpr std::size_t kKind = 12;
constexpr std::size_t kTypeAndOperation = 13;

constexpr std::uint8_t kEcnMask = 0x03;
constexpr std::uint8_t kEcnMarked = 0x03;  // CE
constexpr std::uint8_t kStageBit = 0x80;
constexpr std::uint8_t kSentAgainBit = 0x01;  // of the flags
constexpr unsigned kStepBits = 5;             // the lane has the other three
static_assert(kMaxFlowSteps == 1U << kStepBits && kMaxLanes == 1U << (8 - kStepBits));

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

void parse_transport(const std::uint8_t* at, TransportHeader& out) {
  out.job = load_little<std::uint32_t>(at + kJob);
  out.epoch = load_little<std::uint16_t>(at + kEpoch);
  out.stage = (at[kFlow] & kStageBit) != 0 ? Stage::broadcast : Stage::aggregation;
  out.thread = static_cast<std::uint8_t>(at[kFlow] & ~kStageBit);
  out.lane = static_cast<std::uint8_t>(at[kLaneAndStep] >> kStepBits);
  out.step = static_cast<std::uint8_t>(at[kLaneAndStep] & (kMaxFlowSteps - 1));
  out.backlog = at[kBacklog];
  out.held = at[kHeld];
  out.credit = at[kCredit];
  out.sent_again = (at[kFlags] & kSentAgainBit) != 0;
  out.sequence = load_little<std::uint32_t>(at + kSequence);
  out.acknowledged = load_little<std::uint32_t>(at + kAcknowledged);
  out.selective = load_little<std::uint64_t>(at + kSelective);
}

void parse_segment(const std::uint8_t* at, SegmentHeader& out) {
  out.collective = load_little<std::uint32_t>(at + kCollective);
  out.count = load_little<std::uint32_t>(at + kCount);
  out.length = load_little<std::uint16_t>(at + kLength);
  out.root = load_little<std::uint16_t>(at + kRoot);
  out.kind = at[kKind];
  out.type_and_operation = at[kTypeAndOperation];
}

// Where the headers end and how long the payload is, if the frame has them.
FrameError parse_extent(const std::uint8_t* frame, std::size_t readable, std::size_t udp_length,
                        std::size_t headers, ParsedFrame& out) {
  if (readable < headers) return FrameError::too_short;
  if (kUdpAt + udp_length < headers) return FrameError::bad_length;
  parse_hops(frame + kFirstHopAt, readable - kFirstHopAt, out.routing);
  out.header_bytes = headers;
  out.payload_bytes = kUdpAt + udp_length - headers;
  out.congestion_marked = (frame[kIpTosAt] & kEcnMask) == kEcnMarked;
  return FrameError::none;
}

FrameError parse_message(const std::uint8_t* frame, std::size_t readable, std::size_t udp_length,
                         ParsedFrame& out) {
  const std::size_t headers =
      message_header_bytes(out.routing.hop_count, out.routing.authenticated);
  const FrameError error = parse_extent(frame, readable, udp_length, headers, out);
  if (error != FrameError::none) return error;
  const std::uint8_t* const at = frame + kRoutingAt + routing_bytes(out.routing.hop_count);
  out.message.incarnation = load_little<std::uint64_t>(at + kIncarnation);
  out.message.number = load_little<std::uint64_t>(at + kNumber);
  out.message.index = at[kFragmentIndex];
  out.message.fragments = at[kFragments];
  out.message.length = load_little<std::uint16_t>(at + kFragmentLength);
  return out.payload_bytes == out.message.length ? FrameError::none : FrameError::bad_length;
}

FullFrameNews full_frames_of(std::uint16_t bits) {
  return {.sent = (bits & kFullSentBit) != 0,
          .wanted = (bits & kFullWantedBit) != 0,
          .unproven = (bits & kFullUnprovenBit) != 0,
          .lost = (bits & kFullLostBit) != 0};
}

// The padding of a greeting may have any length here: what is full only the cluster knows.
FrameError parse_link(const std::uint8_t* frame, std::size_t readable, std::size_t udp_length,
                      ParsedFrame& out) {
  const bool is_greeting = out.type == FrameType::greeting;
  const std::size_t headers =
      link_header_bytes(out.routing.hop_count, is_greeting, out.routing.authenticated);
  const FrameError error = parse_extent(frame, readable, udp_length, headers, out);
  if (error != FrameError::none) return error;
  const std::uint8_t* const at = frame + kRoutingAt + routing_bytes(out.routing.hop_count);
  out.link.server = load_little<std::uint16_t>(at + kLinkServer);
  out.link.level = at[kLinkLevel];
  out.link.digit = at[kLinkDigit];
  if (is_greeting) {
    out.link.full_frames = full_frames_of(load_little<std::uint16_t>(at + kFullFrames));
    out.link.settings.fingerprint = load_little<std::uint32_t>(at + kFingerprint);
    out.link.settings.bits_per_second = load_little<std::uint64_t>(at + kRate);
    out.link.settings.mtu = load_little<std::uint16_t>(at + kMtu);
    out.link.number = load_little<std::uint64_t>(at + kGreetingNumber);
    out.link.echo = load_little<std::uint64_t>(at + kGreetingEcho);
  }
  return is_greeting || out.payload_bytes == 0 ? FrameError::none : FrameError::bad_length;
}

FrameError parse_path_probe(const std::uint8_t* frame, std::size_t readable, std::size_t udp_length,
                            ParsedFrame& out) {
  const std::size_t headers = path_probe_bytes(out.routing.hop_count, out.routing.authenticated);
  const FrameError error = parse_extent(frame, readable, udp_length, headers, out);
  if (error != FrameError::none) return error;
  const std::uint8_t* const at = frame + kRoutingAt + routing_bytes(out.routing.hop_count);
  out.path_probe.number = load_little<std::uint32_t>(at + kProbeNumber);
  out.path_probe.answer = (at[kProbeFlags] & kAnswerBit) != 0;
  out.path_probe.bits_per_second_left = load_little<std::uint64_t>(at + kProbeLeft);
  return out.payload_bytes == 0 ? FrameError::none : FrameError::bad_length;
}

FrameError parse_unsegmented(const std::uint8_t* frame, std::size_t readable,
                             std::size_t udp_length, ParsedFrame& out) {
  switch (out.type) {
    case FrameType::message:
      return parse_message(frame, readable, udp_length, out);
    case FrameType::path_probe:
      return parse_path_probe(frame, readable, udp_length, out);
    default:
      return parse_link(frame, readable, udp_length, out);
  }
}

unsigned steered_as(unsigned thread) {
  if (thread == kMailThread) return 0;
  return thread < kFirstHubThread ? thread : thread - kFirstHubThread;
}

}  // namespace

FrameTemplate::FrameTemplate(const LinkAddresses& link, const RoutingHeader& routing,
                             const TransportHeader& flow) {
  if (flow.thread >= kMaxThreads) {
    throw std::invalid_argument("the number of a thread must be below 128");
  }
  if (flow.lane >= kMaxLanes) {
    throw std::invalid_argument("the number of a lane must be below 8");
  }
  if (flow.step >= kMaxFlowSteps) {
    throw std::invalid_argument("the number of a step must be below 32");
  }
  std::uint8_t* const frame = prefix_.data();
  transport_offset_ = static_cast<std::uint8_t>(
      store_prefix(frame, link, routing,
                   static_cast<std::uint16_t>(kFirstSourcePort + steered_as(flow.thread))));
  authenticated_ = routing.authenticated;
  address_sum_ = ip_sum(frame);
  std::uint8_t* const at = frame + transport_offset_;
  store_little<std::uint32_t>(at + kJob, flow.job);
  store_little<std::uint16_t>(at + kEpoch, flow.epoch);
  at[kFlow] =
      static_cast<std::uint8_t>(flow.thread | (flow.stage == Stage::broadcast ? kStageBit : 0));
  at[kLaneAndStep] = static_cast<std::uint8_t>(flow.lane << kStepBits | flow.step);
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
  std::uint8_t* at = frame + transport_offset_;
  at[kBacklog] = transport.backlog;
  at[kHeld] = transport.held;
  at[kCredit] = transport.credit;
  at[kFlags] = transport.sent_again ? kSentAgainBit : 0;
  store_little<std::uint32_t>(at + kSequence, transport.sequence);
  store_little<std::uint32_t>(at + kAcknowledged, transport.acknowledged);
  store_little<std::uint64_t>(at + kSelective, transport.selective);
  at += kTransportBytes;
  if (segment != nullptr) {
    store_little<std::uint32_t>(at + kCollective, segment->collective);
    store_little<std::uint32_t>(at + kCount, segment->count);
    store_little<std::uint16_t>(at + kLength, segment->length);
    store_little<std::uint16_t>(at + kRoot, segment->root);
    at[kKind] = segment->kind;
    at[kTypeAndOperation] = segment->type_and_operation;
    at += kSegmentBytes;
  }
  std::memset(at, 0, check);
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
  if (out.type > FrameType::probe) return parse_unsegmented(frame, readable, udp_length, out);
  const std::size_t headers =
      header_bytes(out.routing.hop_count, out.is_segment, out.routing.authenticated);
  const FrameError error = parse_extent(frame, readable, udp_length, headers, out);
  if (error != FrameError::none) return error;
  const std::uint8_t* const transport = frame + kRoutingAt + routing_bytes(out.routing.hop_count);
  parse_transport(transport, out.transport);
  if (out.is_segment) parse_segment(transport + kTransportBytes, out.segment);
  if (out.payload_bytes != (out.is_segment ? out.segment.length : 0)) return FrameError::bad_length;
  return FrameError::none;
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
