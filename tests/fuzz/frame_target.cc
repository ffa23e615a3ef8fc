// The frame parser. The input's first byte is odd if the IPv4 checksum is to be made right, because
// few mutations would come further otherwise. The second says how many bytes of the frame lie
// beyond its first buffer. The rest is that buffer.

#include "protocol/crc.h"
#include "protocol/link_frame.h"
#include "protocol/mac.h"
#include "protocol/message_frame.h"
#include "protocol/wire.h"
#include "tests/fuzz/fuzz_target.h"

namespace gradcube::fuzz {

const unsigned kMutations = 500'000;

namespace {

void renew_ip_checksum(Bytes& frame) {
  constexpr std::size_t kIp = 14;
  constexpr std::size_t kIpEnd = kIp + 20;
  constexpr std::size_t kChecksum = kIp + 10;
  if (frame.size() < kIpEnd) return;
  frame[kChecksum] = frame[kChecksum + 1] = 0;
  std::uint32_t sum = 0;
  for (std::size_t at = kIp; at < kIpEnd; at += 2) sum += frame[at] << 8U | frame[at + 1];
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  frame[kChecksum] = static_cast<std::uint8_t>(~sum >> 8);
  frame[kChecksum + 1] = static_cast<std::uint8_t>(~sum);
}

}  // namespace

void read_hostile(std::span<const std::uint8_t> input) {
  if (input.size() < 2) return;
  Bytes frame(input.begin() + 2, input.end());
  const std::size_t frame_bytes = frame.size() + input[1];
  if (input[0] % 2 != 0) renew_ip_checksum(frame);

  protocol::ParsedFrame parsed;
  if (protocol::parse_frame(frame, frame_bytes, parsed) != protocol::FrameError::none) return;
  require(parsed.header_bytes <= frame.size(), "headers lie in the first buffer");
  require(parsed.header_bytes <= protocol::kMaxHeaderBytes, "headers are of bounded length");
  require(parsed.payload_bytes <= frame_bytes - parsed.header_bytes,
          "the payload lies in the frame");
  const bool is_message = parsed.type == protocol::FrameType::message;
  const bool may_be_padded = parsed.type == protocol::FrameType::greeting;
  require(parsed.is_segment || is_message || may_be_padded || parsed.payload_bytes == 0,
          "only segments, messages and greetings have something behind their headers");
  require(!is_message || parsed.payload_bytes == parsed.message.length,
          "a message's fragment is as long as it says");
  require(parsed.routing.hop_index < parsed.routing.hop_count, "the hop is one of the route's");
  require(parsed.routing.hop_count <= protocol::kMaxHops, "the route is of bounded length");
  require(parsed.transport.lane < protocol::kMaxLanes, "the lane is one of the wire's");
  require(parsed.transport.step < protocol::kMaxFlowSteps, "the step is one of the wire's");
  require(parsed.type <= protocol::FrameType::path_failure,
          "only types that are used are accepted");
  require(
      !protocol::is_announcement(parsed.routing) || parsed.type == protocol::FrameType::greeting,
      "only greetings announce their sender");

  // What a switch and a relay do leaves a frame that is accepted again.
  const bool relayed = !protocol::destination_reached(parsed.routing);
  protocol::mark_congestion(frame);
  if (relayed) protocol::advance_hop(frame);
  if (relayed && parsed.type == protocol::FrameType::path_probe) {
    protocol::lower_left(frame, parsed, 1000);
  }
  protocol::ParsedFrame again;
  require(protocol::parse_frame(frame, frame_bytes, again) == protocol::FrameError::none,
          "a frame is accepted behind a switch and a relay");
  require(again.congestion_marked, "a mark stays");
  require(again.routing.hop_index == parsed.routing.hop_index + (relayed ? 1 : 0),
          "a relay moves the hop on by one");
}

std::vector<Bytes> seeds() {
  const protocol::LinkAddresses link{
      {2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 0x0a000001, 0x0a000002};
  protocol::TransportHeader transport;
  transport.job = 7;
  transport.thread = 1;
  transport.lane = 2;
  transport.step = 3;
  transport.held = 4;
  transport.sequence = 1000;
  transport.credit = 16;
  protocol::SegmentHeader segment;
  segment.length = 64;
  segment.count = 16;
  std::vector<Bytes> inputs;
  const protocol::FrameKey some_key(protocol::FrameSecret{});
  const protocol::ServerKeys some_keys(some_key);
  for (std::uint8_t hops = 1; hops <= 3; ++hops) {
    protocol::RoutingHeader routing;
    routing.destination = 5;
    routing.hop_count = hops;
    const protocol::ServerKeys* keys = hops == 2 ? &some_keys : nullptr;
    routing.authenticated = keys != nullptr;
    for (std::uint8_t hop = 0; hop < hops; ++hop) routing.hops[hop] = {hop, 1};
    Bytes message(200);
    message.resize(protocol::MessageSplitter(link, routing, 200, 7, 8, Bytes(50, 0x5a), keys)
                       .write(0, message));
    message.insert(message.begin(), {1, 0});
    inputs.push_back(message);
    for (const auto type : {protocol::FrameType::greeting, protocol::FrameType::path_failure}) {
      Bytes about_link(200);
      const Bytes padding(type == protocol::FrameType::greeting ? 100 : 0);
      about_link.resize(protocol::write_link_frame(about_link, type, link, routing, 49152,
                                                   {5, 0, 1, 7, 8, {0x5a5a5a5a, 9000, 1'000'000}},
                                                   keys, padding));
      about_link.insert(about_link.end(), padding.begin(), padding.end());
      about_link.insert(about_link.begin(), {1, 0});
      inputs.push_back(about_link);
    }
    Bytes probe(200);
    probe.resize(
        protocol::write_path_probe(probe, link, routing, 49152, {0x5a5a5a5a, false, 9}, keys));
    probe.insert(probe.begin(), {1, 0});
    inputs.push_back(probe);
    for (const bool is_segment : {false, true}) {
      Bytes frame(protocol::kMaxHeaderBytes);
      frame.resize(
          protocol::encode_frame(frame, link, routing, transport, is_segment ? &segment : nullptr));
      for (const bool apart : {false, true}) {  // the payload in a buffer of its own
        const std::uint8_t elsewhere = is_segment && apart ? 64 : 0;
        Bytes input = {1, elsewhere};
        input.insert(input.end(), frame.begin(), frame.end());
        if (is_segment && !apart) input.resize(input.size() + 64, 0x5a);
        inputs.push_back(input);
      }
    }
  }
  return inputs;
}

}  // namespace gradcube::fuzz
