#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "protocol/wire.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

void expect_same(const TransportHeader& a, const TransportHeader& b) {
  EXPECT_EQ(a.job, b.job);
  EXPECT_EQ(a.epoch, b.epoch);
  EXPECT_EQ(a.stage, b.stage);
  EXPECT_EQ(a.thread, b.thread);
  EXPECT_EQ(a.lane, b.lane);
  EXPECT_EQ(a.step, b.step);
  EXPECT_EQ(a.backlog, b.backlog);
  EXPECT_EQ(a.held, b.held);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.acknowledged, b.acknowledged);
  EXPECT_EQ(a.selective, b.selective);
  EXPECT_EQ(a.credit, b.credit);
  EXPECT_EQ(a.sent_again, b.sent_again);
}

TEST(FrameTemplate, ASegmentComesBackFieldByFieldForEveryNumberOfHops) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    const SampleFrame sample(100, hops);
    const auto frame = sample.bytes();
    ASSERT_EQ(frame.size(), header_bytes(FrameType::segment, hops) + 100);
    ParsedFrame parsed;
    ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
    EXPECT_EQ(parsed.type, FrameType::segment);
    EXPECT_TRUE(parsed.is_segment);
    EXPECT_FALSE(parsed.congestion_marked);
    EXPECT_EQ(parsed.header_bytes, header_bytes(FrameType::segment, hops));
    EXPECT_EQ(parsed.payload_bytes, 100U);
    EXPECT_EQ(parsed.routing.source, sample.routing.source);
    EXPECT_EQ(parsed.routing.destination, sample.routing.destination);
    EXPECT_EQ(parsed.routing.hop_count, hops);
    EXPECT_EQ(parsed.routing.hop_index, 0);
    for (unsigned hop = 0; hop < hops; ++hop) {
      EXPECT_EQ(parsed.routing.hops[hop], sample.routing.hops[hop]);
    }
    expect_same(parsed.transport, sample.transport);
    EXPECT_EQ(parsed.segment.collective, sample.segment.collective);
    EXPECT_EQ(parsed.segment.count, sample.segment.count);
    EXPECT_EQ(parsed.segment.length, sample.segment.length);
    EXPECT_EQ(parsed.segment.root, sample.segment.root);
    EXPECT_EQ(parsed.segment.kind, sample.segment.kind);
    EXPECT_EQ(parsed.segment.type_and_operation, sample.segment.type_and_operation);
  }
}

TEST(FrameTemplate, AnAcknowledgementAndAProbeCarryTheTransportHeaderAlone) {
  const SampleFrame sample;
  const FrameTemplate flow(sample.link, sample.routing, sample.transport);
  std::vector<std::uint8_t> frame(kMaxHeaderBytes);
  ParsedFrame parsed;
  const std::size_t bytes = flow.write(frame, sample.transport, nullptr);
  ASSERT_EQ(bytes, kAcknowledgementHeaderBytes);
  ASSERT_EQ(parse_frame(frame, bytes, parsed), FrameError::none);
  EXPECT_EQ(parsed.type, FrameType::acknowledgement);
  EXPECT_FALSE(parsed.is_segment);
  EXPECT_EQ(parsed.payload_bytes, 0U);
  expect_same(parsed.transport, sample.transport);

  ASSERT_EQ(flow.write_probe(frame, sample.transport), kAcknowledgementHeaderBytes);
  ASSERT_EQ(parse_frame(frame, bytes, parsed), FrameError::none);
  EXPECT_EQ(parsed.type, FrameType::probe);
  expect_same(parsed.transport, sample.transport);
}

TEST(FrameTemplate, AOneHopSegmentHas96BytesOfHeadersInTheDocumentedPlaces) {
  const auto frame = SampleFrame(64).bytes();
  ASSERT_EQ(frame.size(), 96U + 64U);
  const std::vector<std::uint8_t> expected = {
      2,    0,    0,    0,    0,    2,    2,    0,    0,  0, 0, 1, 0x08, 0x00,  // Ethernet
      0x45, 0x02, 0x00, 0x92, 0x00, 0x00, 0x40, 0x00, 64, 17};                  // IPv4
  EXPECT_EQ(std::vector<std::uint8_t>(frame.begin(), frame.begin() + 24), expected);
  const std::vector<std::uint8_t> from_addresses = {
      10,   0,    0,    1,    10,   0,    1,    2,     // IPv4 addresses
      0xc0, 0x05, 0xb8, 0xe2, 0x00, 0x7e, 0x00, 0x00,  // UDP
      0x91, 0x10, 0x02, 0x01, 0x04, 0x03, 0x01, 0x20,  // routing
      0xa4, 0xa3, 0xa2, 0xa1, 0xb2, 0xb1, 0x85, 0xd3,  // job, epoch, flow, lane and step
      17,   9,    0x77, 0x01, 0xc4, 0xc3, 0xc2, 0xc1,  // backlog, held, credit, flags, sequence
      0xd4, 0xd3, 0xd2, 0xd1,                          // acknowledged
      0xe8, 0xe7, 0xe6, 0xe5, 0xe4, 0xe3, 0xe2, 0xe1,  // selective
      0x14, 0x13, 0x12, 0x11, 0x44, 0x43, 0x42, 0x41,  // segment: collective, count
      64,   0,    0x32, 0x31, 0x51, 0x21};             // length, root, kind, type
  EXPECT_EQ(std::vector<std::uint8_t>(frame.begin() + 26, frame.begin() + 92), from_addresses);
}

TEST(FrameTemplate, WriteRefusesABufferThatIsShorterThanTheHeaders) {
  const SampleFrame sample;
  const FrameTemplate flow(sample.link, sample.routing, sample.transport);
  std::vector<std::uint8_t> frame(kSegmentHeaderBytes - 1, 0xee);
  EXPECT_EQ(flow.write(frame, sample.transport, &sample.segment), 0U);
  EXPECT_EQ(frame, std::vector<std::uint8_t>(kSegmentHeaderBytes - 1, 0xee));
}

TEST(FrameTemplate, WriteRefusesAPayloadThatIpv4CannotCarry) {
  SampleFrame sample(0, kMaxHops);
  sample.routing.authenticated = true;
  const FrameTemplate flow(sample.link, sample.routing, sample.transport);
  std::vector<std::uint8_t> frame(kMaxHeaderBytes);
  sample.segment.length = static_cast<std::uint16_t>(kMaxPayloadBytes + 1);
  EXPECT_EQ(flow.write(frame, sample.transport, &sample.segment), 0U);
  sample.segment.length = static_cast<std::uint16_t>(kMaxPayloadBytes);
  ASSERT_EQ(flow.write(frame, sample.transport, &sample.segment), kMaxHeaderBytes);
  ParsedFrame parsed;
  EXPECT_EQ(parse_frame(frame, kMaxHeaderBytes + kMaxPayloadBytes, parsed), FrameError::none);
}

TEST(FrameTemplate, RefusesRoutesThatTheWireCannotHold) {
  const SampleFrame sample;
  RoutingHeader routing = sample.routing;
  routing.hop_count = 0;
  EXPECT_THROW(FrameTemplate(sample.link, routing, sample.transport), std::invalid_argument);
  routing.hop_count = kMaxHops + 1;
  EXPECT_THROW(FrameTemplate(sample.link, routing, sample.transport), std::invalid_argument);
  routing.hop_count = 2;
  routing.hop_index = 2;
  EXPECT_THROW(FrameTemplate(sample.link, routing, sample.transport), std::invalid_argument);
}

TEST(FrameTemplate, KeepsTheFlowWhateverThePacketSays) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    const SampleFrame sample(0, hops);
    const FrameTemplate flow(sample.link, sample.routing, sample.transport);
    TransportHeader packet;  // all that belongs to the flow is 0
    packet.sequence = 3;
    std::vector<std::uint8_t> frame(kMaxHeaderBytes);
    const std::size_t bytes = flow.write(frame, packet, nullptr);
    ParsedFrame parsed;
    ASSERT_EQ(parse_frame(frame, bytes, parsed), FrameError::none);
    TransportHeader expected = sample.transport;
    expected.backlog = 0;
    expected.held = 0;
    expected.credit = 0;
    expected.sent_again = false;
    expected.sequence = 3;
    expected.acknowledged = 0;
    expected.selective = 0;
    expect_same(parsed.transport, expected);
  }
}

TEST(FrameTemplate, WritesEveryLaneWithEveryStep) {
  for (std::uint8_t lane = 0; lane < kMaxLanes; ++lane) {
    for (std::uint8_t step = 0; step < kMaxFlowSteps; ++step) {
      SampleFrame sample;
      sample.transport.lane = lane;
      sample.transport.step = step;
      const auto frame = sample.acknowledgement_bytes();
      ParsedFrame parsed;
      ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
      EXPECT_EQ(parsed.transport.lane, lane);
      EXPECT_EQ(parsed.transport.step, step);
    }
  }
}

TEST(FrameTemplate, SendsFromTheSourcePortOfItsThread) {
  const std::vector<std::pair<unsigned, int>> steered = {
      {0, 0}, {5, 5}, {kFirstHubThread, 0}, {kFirstHubThread + 5, 5}, {kMailThread, 0}};
  for (const auto& [thread, steered_as] : steered) {
    SampleFrame sample;
    sample.transport.thread = static_cast<std::uint8_t>(thread);
    const auto frame = sample.bytes();
    EXPECT_EQ(frame[34] << 8 | frame[35], 49152 + steered_as);
  }
}

TEST(FrameTemplate, WritesTheHighestThreadAndBothStages) {
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    SampleFrame sample;
    sample.transport.thread = kMaxThreads - 1;
    sample.transport.stage = stage;
    const auto frame = sample.bytes();
    ParsedFrame parsed;
    ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
    EXPECT_EQ(parsed.transport.thread, kMaxThreads - 1);
    EXPECT_EQ(parsed.transport.stage, stage);
  }
}

}  // namespace
}  // namespace gradcube::protocol
