#include "protocol/link_frame.h"

#include <gtest/gtest.h>
#include <vector>

#include "protocol/crc.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes link_frame(FrameType type, const LinkHeader& link, unsigned hops = 1) {
  const SampleFrame sample(0, hops);
  Bytes frame(200, 0xee);
  frame.resize(
      write_link_frame(frame, type, sample.link, sample.routing, kFirstSourcePort + 3, link));
  return frame;
}

constexpr std::uint64_t kSentNumber = 0x4142434445464748;
constexpr std::uint64_t kSentEcho = 0x5152535455565758;
constexpr SettingsDigest kDigest = {0x11121314, 0x2122, 0x3132333435363738};

TEST(LinkFrame, IsWhatTheTableSays) {
  const Bytes frame =
      link_frame(FrameType::greeting, {0x0102, 3, 4, kSentNumber, kSentEcho, kDigest});
  const Bytes from_udp(frame.begin() + 34, frame.begin() + 86);
  const Bytes expected = {0xc0, 0x03, 0xb8, 0xe2, 0,    56,   0,    0,     // UDP
                          0x94, 0x10, 0x02, 0x01, 0x04, 0x03, 1,    0x20,  // routing
                          0x02, 0x01, 3,    4,    0,    0,                 // link
                          0x14, 0x13, 0x12, 0x11,                          // settings
                          0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31, 0x22,
                          0x21, 0x48, 0x47, 0x46, 0x45, 0x44, 0x43, 0x42, 0x41,  // number, echo
                          0x58, 0x57, 0x56, 0x55, 0x54, 0x53, 0x52, 0x51};
  EXPECT_EQ(from_udp, expected);
  EXPECT_EQ(frame.size(), 90u);
}

TEST(LinkFrame, TellsOfFullFramesInItsFlags) {
  for (unsigned bits = 0; bits < 16; ++bits) {
    const FullFrameNews news = {(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0, (bits & 8) != 0};
    Bytes frame = link_frame(FrameType::greeting, {1, 0, 2, 3, 4, kDigest, news});
    EXPECT_EQ(frame[54], bits);
    EXPECT_EQ(frame[55], 0);
    ParsedFrame parsed;
    frame[55] = 0xff;  // of a later version
    ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
    EXPECT_EQ(parsed.link.full_frames, news);
  }
}

TEST(LinkFrame, MayBePaddedIfItIsAGreeting) {
  const SampleFrame sample(0, 1);
  const Bytes padding(1400, 0xaa);
  for (const FrameType type : {FrameType::greeting, FrameType::path_failure}) {
    Bytes frame(200);
    frame.resize(write_link_frame(frame, type, sample.link, sample.routing, kFirstSourcePort,
                                  {1, 0, 2}, nullptr, padding));
    const std::size_t headers = frame.size();
    frame.insert(frame.end(), padding.begin(), padding.end());
    ParsedFrame parsed;
    const FrameError error = parse_frame(frame, frame.size(), parsed);
    if (type == FrameType::path_failure) {
      EXPECT_EQ(error, FrameError::bad_length);
      continue;
    }
    ASSERT_EQ(error, FrameError::none);
    EXPECT_EQ(parsed.header_bytes, headers);
    EXPECT_EQ(parsed.payload_bytes, padding.size());
    const std::span<const std::uint8_t> all(frame);
    EXPECT_TRUE(crc_is_right(all.first(headers), all.subspan(headers)));
    EXPECT_FALSE(crc_is_right(all.first(headers), all.subspan(headers, 1399)));
    EXPECT_EQ(parse_frame(frame, frame.size() - 1, parsed), FrameError::bad_length)
        << "it claims more than came";
  }
}

TEST(LinkFrame, OfAPathFailureEndsWithItsLink) {
  const Bytes frame =
      link_frame(FrameType::path_failure, {0x0102, 3, 4, kSentNumber, kSentEcho, kDigest});
  const Bytes link(frame.begin() + 50, frame.begin() + 56);
  EXPECT_EQ(link, (Bytes{0x02, 0x01, 3, 4, 0, 0}));
  EXPECT_EQ(frame.size(), 60u);
}

TEST(LinkFrame, ComesBackFieldByFieldForEveryNumberOfHops) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    for (const FrameType type : {FrameType::greeting, FrameType::path_failure}) {
      const bool greets = type == FrameType::greeting;
      const Bytes frame = link_frame(type, {60'000, 7, 255, kSentNumber, kSentEcho, kDigest}, hops);
      ParsedFrame parsed;
      ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
      EXPECT_EQ(parsed.type, type);
      EXPECT_FALSE(parsed.is_segment);
      EXPECT_EQ(parsed.routing.hop_count, hops);
      EXPECT_EQ(parsed.link.server, 60'000);
      EXPECT_EQ(parsed.link.level, 7);
      EXPECT_EQ(parsed.link.digit, 255);
      EXPECT_EQ(parsed.link.number, greets ? kSentNumber : 0);
      EXPECT_EQ(parsed.link.echo, greets ? kSentEcho : 0);
      EXPECT_EQ(parsed.link.settings, greets ? kDigest : SettingsDigest{});
      EXPECT_EQ(parsed.header_bytes, frame.size());
      EXPECT_TRUE(crc_is_right(frame, {}));
    }
  }
}

TEST(LinkFrame, IsRefusedWhereverItIsCut) {
  for (const FrameType type : {FrameType::greeting, FrameType::path_failure}) {
    const Bytes frame = link_frame(type, {1, 0, 2}, 3);
    for (std::size_t length = 0; length < frame.size(); ++length) {
      ParsedFrame parsed;
      EXPECT_NE(parse_frame(std::span(frame).first(length), length, parsed), FrameError::none);
    }
  }
}

TEST(LinkFrame, AnnouncesItsSenderOnlyAsAGreeting) {
  SampleFrame sample;
  sample.routing.destination = sample.routing.source;
  EXPECT_TRUE(is_announcement(sample.routing));
  ParsedFrame parsed;
  for (const FrameType type : {FrameType::greeting, FrameType::path_failure}) {
    Bytes frame(200);
    frame.resize(
        write_link_frame(frame, type, sample.link, sample.routing, kFirstSourcePort, {1, 0, 2}));
    EXPECT_EQ(parse_frame(frame, frame.size(), parsed),
              type == FrameType::greeting ? FrameError::none : FrameError::bad_address);
  }
}

TEST(LinkFrame, IsNotWrittenWithoutRoomOrWithoutHops) {
  const SampleFrame sample;
  Bytes frame(header_bytes(FrameType::greeting, 1) - 1);
  EXPECT_EQ(write_link_frame(frame, FrameType::greeting, sample.link, sample.routing, 1, {}), 0u);
  frame.resize(200);
  RoutingHeader none;
  none.hop_count = 0;
  EXPECT_EQ(write_link_frame(frame, FrameType::greeting, sample.link, none, 1, {}), 0u);
}

}  // namespace
}  // namespace gradcube::protocol
