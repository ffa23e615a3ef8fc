#include <gtest/gtest.h>
#include <vector>

#include "protocol/crc.h"
#include "protocol/link_frame.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes probe_frame(const PathProbeHeader& probe, unsigned hops = 1) {
  const SampleFrame sample(0, hops);
  Bytes frame(200, 0xee);
  frame.resize(write_path_probe(frame, sample.link, sample.routing, kFirstSourcePort + 3, probe));
  return frame;
}

ParsedFrame parsed(const Bytes& frame) {
  ParsedFrame parsed;
  EXPECT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
  return parsed;
}

TEST(PathProbe, IsWhatTheTableSays) {
  const Bytes frame = probe_frame({0x11121314, true, 0x2122232425262728});
  const Bytes from_udp(frame.begin() + 34, frame.begin() + 64);
  const Bytes expected = {0xc0, 0x03, 0xb8, 0xe2, 0,    34,   0,    0,     // UDP
                          0x96, 0x10, 0x02, 0x01, 0x04, 0x03, 1,    0x20,  // routing
                          0x14, 0x13, 0x12, 0x11, 1,    0,                 // number, flags
                          0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21};
  EXPECT_EQ(from_udp, expected);
  EXPECT_EQ(frame.size(), 68u);
}

TEST(PathProbe, ComesBackFieldByFieldForEveryNumberOfHops) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    for (const bool answer : {false, true}) {
      const Bytes frame = probe_frame({7, answer, 123'456'789'012}, hops);
      const ParsedFrame read = parsed(frame);
      EXPECT_EQ(read.type, FrameType::path_probe);
      EXPECT_FALSE(read.is_segment);
      EXPECT_EQ(read.routing.hop_count, hops);
      EXPECT_EQ(read.path_probe.number, 7u);
      EXPECT_EQ(read.path_probe.answer, answer);
      EXPECT_EQ(read.path_probe.bits_per_second_left, 123'456'789'012u);
      EXPECT_EQ(read.header_bytes, frame.size());
      EXPECT_TRUE(crc_is_right(frame, {}));
    }
  }
}

TEST(PathProbe, IsRefusedWhereverItIsCut) {
  const Bytes frame = probe_frame({1, false, 2}, 3);
  for (std::size_t length = 0; length < frame.size(); ++length) {
    ParsedFrame read;
    EXPECT_NE(parse_frame(std::span(frame).first(length), length, read), FrameError::none);
  }
}

TEST(PathProbe, IsLoweredByRelaysAndNeverRaised) {
  Bytes frame = probe_frame({1, false, PathProbeHeader::kUnbounded}, 3);
  const std::uint64_t steps[][2] = {{PathProbeHeader::kUnbounded, PathProbeHeader::kUnbounded},
                                    {500, 500},
                                    {700, 500},
                                    {499, 499},
                                    {0, 0},
                                    {1, 0}};
  for (const auto& [left, expected] : steps) {
    lower_left(frame, parsed(frame), left);
    EXPECT_EQ(parsed(frame).path_probe.bits_per_second_left, expected);
    EXPECT_TRUE(crc_is_right(frame, {}));
  }
}

TEST(PathProbe, IsWrittenNeitherInTooLittleRoomNorWithoutHops) {
  const SampleFrame sample;
  Bytes frame(header_bytes(FrameType::path_probe, 1) - 1);
  EXPECT_EQ(write_path_probe(frame, sample.link, sample.routing, kFirstSourcePort, {}), 0u);
  RoutingHeader none = sample.routing;
  none.hop_count = 0;
  frame.resize(200);
  EXPECT_EQ(write_path_probe(frame, sample.link, none, kFirstSourcePort, {}), 0u);
}

}  // namespace
}  // namespace gradcube::protocol
