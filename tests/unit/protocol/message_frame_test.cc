#include "protocol/message_frame.h"

#include <gtest/gtest.h>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

constexpr std::uint64_t kIncarnation = 0xa1a2a3a4a5a6a7a8;
constexpr std::uint64_t kNumber = 0xb1b2b3b4b5b6b7b8;

Bytes counting(std::size_t bytes) {
  Bytes message(bytes);
  std::iota(message.begin(), message.end(), std::uint8_t{1});
  return message;
}

MessageSplitter split(const Bytes& message, std::size_t frame_bytes, unsigned hops = 1) {
  const SampleFrame sample(0, hops);
  return {sample.link, sample.routing, frame_bytes, kIncarnation, kNumber, message};
}

Bytes message_frame(const MessageSplitter& splitter, unsigned index) {
  Bytes frame(10'000, 0xee);
  frame.resize(splitter.write(index, frame));
  return frame;
}

FrameError read(const Bytes& frame) {
  MessageFragment fragment;
  return read_message_frame(frame, fragment);
}

TEST(MessageFrame, IsWhatTheTableSays) {
  const Bytes message = {'h', 'e', 'l', 'l', 'o'};
  const Bytes expected = {
      2,    0,    0,    0,    0,    2,    2,    0,    0,    0,    0,  1,   // MAC addresses
      0x08, 0x00, 0x45, 0x02, 0x00, 0x41, 0x00, 0x00, 0x40, 0x00, 64, 17,  // IPv4
      0x25, 0xa8, 10,   0,    0,    1,    10,   0,    1,    2,             //
      0xc0, 0x00, 0xb8, 0xe2, 0x00, 0x2d, 0x00, 0x00,                      // UDP
      0x95, 0x10, 0x02, 0x01, 0x04, 0x03, 1,    0x20,                      // routing
      0xa8, 0xa7, 0xa6, 0xa5, 0xa4, 0xa3, 0xa2, 0xa1,                      // message
      0xb8, 0xb7, 0xb6, 0xb5, 0xb4, 0xb3, 0xb2, 0xb1,                      //
      0,    1,    5,    0,                                                 //
      0x6a, 0xe3, 0xb2, 0xc8,                                              // CRC
      'h',  'e',  'l',  'l',  'o'};
  EXPECT_EQ(message_frame(split(message, 1514), 0), expected);
}

TEST(MessageFrame, ComesBackFieldByFieldForEveryNumberOfHops) {
  const Bytes message = counting(1000);
  for (unsigned hops = 1; hops <= kMaxHops; ++hops) {
    const SampleFrame sample(0, hops);
    const MessageSplitter splitter = split(message, 1514, hops);
    ASSERT_EQ(splitter.fragments(), 1U);
    const Bytes frame = message_frame(splitter, 0);
    ASSERT_EQ(frame.size(), header_bytes(FrameType::message, hops) + 1000);
    MessageFragment fragment;
    ASSERT_EQ(read_message_frame(frame, fragment), FrameError::none);
    EXPECT_EQ(fragment.routing.source, sample.routing.source);
    EXPECT_EQ(fragment.routing.destination, sample.routing.destination);
    EXPECT_EQ(fragment.routing.hop_count, hops);
    for (unsigned hop = 0; hop < hops; ++hop) {
      EXPECT_EQ(fragment.routing.hops[hop], sample.routing.hops[hop]);
    }
    EXPECT_EQ(fragment.header.incarnation, kIncarnation);
    EXPECT_EQ(fragment.header.number, kNumber);
    EXPECT_EQ(fragment.header.index, 0);
    EXPECT_EQ(fragment.header.fragments, 1);
    EXPECT_EQ(Bytes(fragment.bytes.begin(), fragment.bytes.end()), message);
  }
}

TEST(MessageFrame, EverySingleBitFlippedThatMeansSomethingToAReceiverIsRefused) {
  for (const unsigned hops : {1U, 3U}) {
    const Bytes good = message_frame(split(counting(64), 1514, hops), 0);
    ASSERT_EQ(read(good), FrameError::none);
    for (std::size_t bit = 12 * 8; bit < good.size() * 8; ++bit) {
      if (bit / 8 == 43 && bit % 8 < 3) continue;    // the current hop, which relays change
      if (bit / 8 == 34 || bit / 8 == 35) continue;  // the source port, which only steers
      Bytes frame = good;
      frame[bit / 8] = static_cast<std::uint8_t>(frame[bit / 8] ^ (1U << (bit % 8)));
      EXPECT_NE(read(frame), FrameError::none) << "bit " << bit;
    }
  }
}

TEST(MessageFrame, EveryTruncationIsRefused) {
  const Bytes whole = message_frame(split(counting(30), 1514, 2), 0);
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const Bytes frame(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    const FrameError error = read(frame);
    EXPECT_TRUE(error == FrameError::too_short || error == FrameError::bad_length) << length;
  }
}

TEST(MessageFrame, EthernetPaddingIsNoPartOfTheFragment) {
  Bytes frame = message_frame(split(counting(2), 1514), 0);
  frame.resize(frame.size() + 18, 0xaa);
  MessageFragment fragment;
  ASSERT_EQ(read_message_frame(frame, fragment), FrameError::none);
  EXPECT_EQ(fragment.bytes.size(), 2U);
}

TEST(MessageFrame, WithAnotherLengthThanItsFragmentIsRefused) {
  for (const std::uint8_t length : {0, 19, 21}) {
    Bytes frame = message_frame(split(counting(20), 1514), 0);
    frame[68] = length;
    ParsedFrame parsed;
    EXPECT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::bad_length) << +length;
  }
}

TEST(MessageFrame, WithoutItsCrcIsRefused) {
  Bytes frame = message_frame(split(counting(20), 1514), 0);
  const std::size_t crc = header_bytes(FrameType::message, 1) - kCrcBytes;
  std::fill_n(frame.begin() + static_cast<std::ptrdiff_t>(crc), kCrcBytes, std::uint8_t{0});
  EXPECT_EQ(read(frame), FrameError::bad_crc);
}

TEST(MessageFrame, IsNotWhatASegmentOrAnAcknowledgementIs) {
  EXPECT_EQ(read(SampleFrame().bytes()), FrameError::unsupported_type);
  EXPECT_EQ(read(SampleFrame().acknowledgement_bytes()), FrameError::unsupported_type);
}

TEST(MessageFrame, PassesASwitchAndARelay) {
  const LinkAddresses next{{2, 9, 9, 9, 9, 1}, {2, 9, 9, 9, 9, 2}, 0x0a010203, 0x0a010209};
  Bytes frame = message_frame(split(counting(20), 1514, 2), 0);
  mark_congestion(frame);
  advance_hop(frame);
  readdress(frame, next);
  EXPECT_EQ(read(frame), FrameError::none);
}

TEST(MessageSplitter, FillsEveryFrameButTheLast) {
  const Bytes message = counting(1000);
  const std::size_t headers = header_bytes(FrameType::message, 2);
  for (const std::size_t room : {4U, 7U, 250U, 500U, 999U, 1000U, 1001U}) {
    const MessageSplitter splitter = split(message, headers + room, 2);
    ASSERT_EQ(splitter.fragments(), (1000 + room - 1) / room);
    Bytes together;
    for (unsigned index = 0; index < splitter.fragments(); ++index) {
      const Bytes frame = message_frame(splitter, index);
      MessageFragment fragment;
      ASSERT_EQ(read_message_frame(frame, fragment), FrameError::none);
      EXPECT_EQ(fragment.header.index, index);
      EXPECT_EQ(fragment.header.fragments, splitter.fragments());
      const bool is_last = index + 1 == splitter.fragments();
      EXPECT_TRUE(is_last || frame.size() == headers + room) << index;
      together.insert(together.end(), fragment.bytes.begin(), fragment.bytes.end());
    }
    EXPECT_EQ(together, message);
  }
}

TEST(MessageSplitter, HasNoFramesForAMessageThatTheyDoNotHold) {
  const std::size_t headers = header_bytes(FrameType::message, 1);
  EXPECT_EQ(split(counting(kMaxFragments), headers + 1).fragments(), kMaxFragments);
  EXPECT_EQ(split(counting(kMaxFragments + 1), headers + 1).fragments(), 0U);
  EXPECT_EQ(split(counting(1), headers).fragments(), 0U);
  EXPECT_EQ(split({}, 1514).fragments(), 0U);
  EXPECT_EQ(split(counting(kMaxMessageBytes), 1514).fragments(), 46U);
  EXPECT_EQ(split(counting(kMaxMessageBytes + 1), 1514).fragments(), 0U);
}

TEST(MessageSplitter, NeverWritesAFrameThatIpv4CannotCarry) {
  const Bytes message = counting(kMaxMessageBytes);
  const MessageSplitter splitter = split(message, 100'000, kMaxHops);
  ASSERT_EQ(splitter.fragments(), 2U);
  Bytes frame(100'000);
  frame.resize(splitter.write(0, frame));
  EXPECT_EQ(read(frame), FrameError::none);
}

TEST(MessageSplitter, WritesNothingIntoTooShortABufferOrBeyondTheLastFragment) {
  const Bytes message = counting(30);
  const MessageSplitter splitter = split(message, 1514);
  const Bytes untouched(header_bytes(FrameType::message, 1) + 29, 0xee);
  Bytes frame = untouched;
  EXPECT_EQ(splitter.write(0, frame), 0U);
  EXPECT_EQ(frame, untouched);
  frame.resize(1514);
  EXPECT_EQ(splitter.write(1, frame), 0U);
  EXPECT_NE(splitter.write(0, frame), 0U);
}

TEST(MessageSplitter, RefusesRoutesThatTheWireCannotHold) {
  const Bytes message = counting(10);
  RoutingHeader routing;
  for (const unsigned hops : {0U, kMaxHops + 1}) {
    routing.hop_count = static_cast<std::uint8_t>(hops);
    EXPECT_THROW(MessageSplitter({}, routing, 1514, 1, 1, message), std::invalid_argument);
  }
}

}  // namespace
}  // namespace gradcube::protocol
