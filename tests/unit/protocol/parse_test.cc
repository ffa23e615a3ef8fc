#include <functional>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "protocol/wire.h"
#include "tests/unit/protocol/sample_frame.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

// Makes the IPv4 header checksum right again, so that what a mutation breaks is found for its own
// sake.
void renew_checksum(Bytes& frame) {
  frame[24] = frame[25] = 0;
  std::uint32_t sum = 0;
  for (std::size_t at = 14; at < 34; at += 2) {
    sum += static_cast<std::uint32_t>(frame[at] << 8 | frame[at + 1]);
  }
  while (sum > 0xffff) sum = (sum & 0xffff) + (sum >> 16);
  frame[24] = static_cast<std::uint8_t>(~sum >> 8);
  frame[25] = static_cast<std::uint8_t>(~sum);
}

FrameError parse(const Bytes& frame) {
  ParsedFrame parsed;
  return parse_frame(frame, frame.size(), parsed);
}

struct Mutation {
  const char* what;
  std::function<void(Bytes&)> apply;
  FrameError reason;
};

std::function<void(Bytes&)> set(std::size_t at, std::uint8_t value) {
  return [=](Bytes& frame) { frame[at] = value; };
}

TEST(ParseFrame, EveryBadFieldIsRefusedForItsReason) {
  const std::vector<Mutation> mutations = {
      {"ethertype", set(12, 0x86), FrameError::not_gradcube},
      {"IP version", set(14, 0x65), FrameError::not_gradcube},
      {"IP options", set(14, 0x46), FrameError::not_gradcube},
      {"IP length shorter than UDP's", set(17, 0x91), FrameError::bad_length},
      {"IP length longer than the frame", set(16, 0x01), FrameError::bad_length},
      {"more fragments", set(20, 0x20), FrameError::fragmented},
      {"fragment offset", set(21, 0x01), FrameError::fragmented},
      {"protocol TCP", set(23, 6), FrameError::not_gradcube},
      {"UDP destination port", set(37, 0xe3), FrameError::not_gradcube},
      {"UDP length", set(39, 0x7f), FrameError::bad_length},
      {"UDP checksum", set(41, 1), FrameError::bad_checksum},
      {"version 0", set(42, 0x01), FrameError::bad_version},
      {"version 1", set(42, 0x11), FrameError::bad_version},
      {"version 5", set(42, 0x51), FrameError::bad_version},
      {"version 6", set(42, 0x61), FrameError::bad_version},
      {"version 7", set(42, 0x71), FrameError::bad_version},
      {"version 8", set(42, 0x81), FrameError::bad_version},
      {"type 0", set(42, 0x90), FrameError::bad_type},
      {"type 8", set(42, 0x98), FrameError::bad_type},
      {"type 15", set(42, 0x9f), FrameError::bad_type},
      {"type path probe with a segment's headers", set(42, 0x96), FrameError::bad_length},
      {"type message with a segment's headers", set(42, 0x95), FrameError::bad_length},
      {"type acknowledgement with a payload", set(42, 0x92), FrameError::bad_length},
      {"no hop", set(43, 0x00), FrameError::bad_hops},
      {"nine hops", set(43, 0x90), FrameError::bad_hops},
      {"a current hop behind the last", set(43, 0x11), FrameError::bad_hops},
      {"source is destination", [](Bytes& frame) { frame[46] = frame[44], frame[47] = frame[45]; },
       FrameError::bad_address},
      {"segment length too long", set(86, 65), FrameError::bad_length},
      {"segment length too short", set(86, 63), FrameError::bad_length},
      {"segment length far too long", set(87, 0xff), FrameError::bad_length},
      {"a byte missing at the end", [](Bytes& frame) { frame.pop_back(); }, FrameError::bad_length},
  };
  for (const Mutation& mutation : mutations) {
    SCOPED_TRACE(mutation.what);
    Bytes frame = SampleFrame().bytes();
    mutation.apply(frame);
    renew_checksum(frame);
    EXPECT_EQ(name(parse(frame)), name(mutation.reason));
  }
}

TEST(ParseFrame, AWrongIpChecksumIsRefused) {
  Bytes frame = SampleFrame().bytes();
  frame[24] ^= 0x10;
  EXPECT_EQ(parse(frame), FrameError::bad_checksum);
}

TEST(ParseFrame, AUdpLengthThatEndsInsideTheHeadersIsRefused) {
  Bytes frame = SampleFrame().bytes();
  frame[39] = 40;
  frame[17] = 60;
  renew_checksum(frame);
  EXPECT_EQ(parse(frame), FrameError::bad_length);
}

TEST(ParseFrame, FieldsThatOnlyTheClusterCanJudgePassAsTheyCame) {
  for (const std::size_t at :
       {48U, 49U, 50U, 54U, 56U, 57U, 58U, 59U, 60U, 62U, 66U, 70U, 78U, 82U, 88U, 90U, 91U}) {
    Bytes frame = SampleFrame().bytes();
    frame[at] = 0xff;
    EXPECT_EQ(name(parse(frame)), "none") << "at " << at;
  }
}

TEST(ParseFrame, AnySourcePortIsAcceptedAndTheFlowSaysTheThread) {
  for (const unsigned port : {0U, 1U, 1024U, 49151U, 49152U, 49156U, 65535U}) {
    Bytes frame = SampleFrame().bytes();
    frame[34] = static_cast<std::uint8_t>(port >> 8);
    frame[35] = static_cast<std::uint8_t>(port);
    ParsedFrame parsed;
    ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none) << port;
    EXPECT_EQ(parsed.transport.thread, 5);
    EXPECT_EQ(receive(frame), FrameError::none) << "no CRC covers the port";
  }
}

TEST(ParseFrame, EthernetPaddingIsNotPayload) {
  SampleFrame sample(2);
  Bytes frame = sample.bytes();
  frame.resize(frame.size() + 18, 0xaa);
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
  EXPECT_EQ(parsed.payload_bytes, 2U);
  EXPECT_EQ(receive(frame), FrameError::none);
}

TEST(ParseFrame, AnEmptySegmentIsASegment) {
  const Bytes frame = SampleFrame(0).bytes();
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
  EXPECT_TRUE(parsed.is_segment);
  EXPECT_EQ(parsed.payload_bytes, 0U);
}

TEST(ParseFrame, APayloadElsewhereNeedsOnlyTheHeadersHere) {
  const Bytes frame = SampleFrame(512, 3).bytes();
  const std::span<const std::uint8_t> headers =
      std::span(frame).first(header_bytes(FrameType::segment, 3));
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(headers, frame.size(), parsed), FrameError::none);
  EXPECT_EQ(parsed.payload_bytes, 512U);
  EXPECT_EQ(parse_frame(headers.first(headers.size() - 1), frame.size(), parsed),
            FrameError::too_short);
}

TEST(ParseFrame, EveryTruncationIsRefused) {
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    const SampleFrame sample(64, hops);
    for (const Bytes& whole : {sample.bytes(), sample.acknowledgement_bytes()}) {
      for (std::size_t length = 0; length < whole.size(); ++length) {
        const Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
        const FrameError error = parse(frame);
        EXPECT_TRUE(error == FrameError::too_short || error == FrameError::bad_length)
            << length << ": " << name(error);
      }
    }
  }
}

TEST(ParseFrame, AFrameLengthBeyondTheContiguousPartIsNeverRead) {
  const Bytes whole = SampleFrame(64, 4).bytes();
  for (std::size_t length = 0; length < header_bytes(FrameType::segment, 4); ++length) {
    const Bytes part(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    ParsedFrame parsed;
    EXPECT_EQ(parse_frame(part, whole.size(), parsed), FrameError::too_short) << length;
  }
}

TEST(ParseFrame, RandomBytesNeverPassForMoreThanTheyAre) {
  const std::uint64_t seed = test_seed(20260101);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const Bytes good = SampleFrame(64, 2).bytes();
  for (int round = 0; round < 200'000; ++round) {
    Bytes frame(random() % 200);
    for (auto& byte : frame) byte = static_cast<std::uint8_t>(random());
    // Half of them get past the outer headers.
    if (round % 2 == 0 && frame.size() > 42) {
      std::copy(good.begin(), good.begin() + 42, frame.begin());
      const std::size_t ip = random() % 4 == 0 ? random() % 300 : frame.size() - 14;
      frame[16] = static_cast<std::uint8_t>(ip >> 8);
      frame[17] = static_cast<std::uint8_t>(ip);
      frame[38] = static_cast<std::uint8_t>((ip - 20) >> 8);
      frame[39] = static_cast<std::uint8_t>(ip - 20);
      frame[42] = static_cast<std::uint8_t>(kVersion << 4 | random() % 8);
      renew_checksum(frame);
    }
    ParsedFrame parsed;
    if (parse_frame(frame, frame.size(), parsed) != FrameError::none) continue;
    ASSERT_LE(parsed.header_bytes + parsed.payload_bytes, frame.size());
    ASSERT_LE(parsed.routing.hop_count, kMaxHops);
    ASSERT_LT(parsed.routing.hop_index, parsed.routing.hop_count);
    ASSERT_LT(parsed.transport.thread, kMaxThreads);
    ASSERT_LT(parsed.transport.lane, kMaxLanes);
    ASSERT_LT(parsed.transport.step, kMaxFlowSteps);
  }
}

TEST(FrameErrors, EveryReasonHasItsOwnName) {
  std::vector<std::string> names;
  for (std::size_t index = 0; index < kFrameErrorCount; ++index) {
    names.emplace_back(name(static_cast<FrameError>(index)));
    EXPECT_FALSE(names.back().empty());
    EXPECT_NE(names.back(), "unknown");
  }
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::unique(names.begin(), names.end()), names.end());
  EXPECT_EQ(name(static_cast<FrameError>(kFrameErrorCount)), "unknown");
}

}  // namespace
}  // namespace gradcube::protocol
