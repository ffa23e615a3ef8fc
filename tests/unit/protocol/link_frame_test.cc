#include "protocol/link_frame.h"

#include <gtest/gtest.h>
#include <vector>

#include "protocol/crc.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes frame_of(FrameType type, const LinkHeader& link, unsigned hops = 1) {
  const SampleFrame sample(0, hops);
  Bytes frame(200, 0xee);
  frame.resize(
      write_link_frame(frame, type, sample.link, sample.routing, kFirstSourcePort + 3, link));
  return frame;
}

TEST(LinkFrame, IsWhatTheTableSays) {
  const Bytes frame = frame_of(FrameType::greeting, {0x0102, 3, 4, true});
  const Bytes from_udp(frame.begin() + 34, frame.begin() + 56);
  const Bytes expected = {0xc0, 0x03, 0xb8, 0xe2, 0,    26,   0, 0,     // UDP
                          0x44, 0x10, 0x02, 0x01, 0x04, 0x03, 1, 0x20,  // routing
                          0x02, 0x01, 3,    4,    1,    0};             // link
  EXPECT_EQ(from_udp, expected);
  EXPECT_EQ(frame.size(), 60u);
}

TEST(LinkFrame, ComesBackFieldByFieldForEveryNumberOfHops) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    for (const FrameType type : {FrameType::greeting, FrameType::path_failure}) {
      for (const bool hears : {false, true}) {
        const Bytes frame = frame_of(type, {60'000, 7, 255, hears}, hops);
        ParsedFrame parsed;
        ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
        EXPECT_EQ(parsed.type, type);
        EXPECT_FALSE(parsed.is_segment);
        EXPECT_EQ(parsed.routing.hop_count, hops);
        EXPECT_EQ(parsed.link.server, 60'000);
        EXPECT_EQ(parsed.link.level, 7);
        EXPECT_EQ(parsed.link.digit, 255);
        EXPECT_EQ(parsed.link.hears_you, hears);
        EXPECT_EQ(parsed.header_bytes, frame.size());
        EXPECT_TRUE(crc_is_right(frame, {}));
      }
    }
  }
}

TEST(LinkFrame, IsRefusedWhereverItIsCut) {
  const Bytes frame = frame_of(FrameType::path_failure, {1, 0, 2, false}, 3);
  for (std::size_t length = 0; length < frame.size(); ++length) {
    ParsedFrame parsed;
    EXPECT_NE(parse_frame(std::span(frame).first(length), length, parsed), FrameError::none);
  }
}

TEST(LinkFrame, IsNotWrittenWithoutRoomOrWithoutHops) {
  const SampleFrame sample;
  Bytes frame(link_header_bytes(1) - 1);
  EXPECT_EQ(write_link_frame(frame, FrameType::greeting, sample.link, sample.routing, 1, {}), 0u);
  frame.resize(200);
  RoutingHeader none;
  none.hop_count = 0;
  EXPECT_EQ(write_link_frame(frame, FrameType::greeting, sample.link, none, 1, {}), 0u);
}

}  // namespace
}  // namespace gradcube::protocol
