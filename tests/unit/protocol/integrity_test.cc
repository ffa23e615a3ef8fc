// The CRC, and what relays and switches may change under it.
#include <gtest/gtest.h>
#include <vector>

#include "protocol/bytes.h"
#include "protocol/crc.h"
#include "protocol/wire.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

TEST(Crc, EverySingleBitFlippedThatMeansSomethingToAReceiverIsRefused) {
  for (unsigned hops : {1U, 3U}) {
    const SampleFrame sample(64, hops);
    for (const Bytes& good : {sample.bytes(), sample.acknowledgement_bytes()}) {
      ASSERT_EQ(receive(good), FrameError::none);
      for (std::size_t bit = 12 * 8; bit < good.size() * 8; ++bit) {
        Bytes frame = good;
        frame[bit / 8] = static_cast<std::uint8_t>(frame[bit / 8] ^ (1U << (bit % 8)));
        // Relays change the current hop, so the CRC does not cover it. The receiver checks it
        // against the route.
        if (bit / 8 == 43 && bit % 8 < 3) continue;
        // The UDP source port: it only steers the frame to a queue.
        if (bit / 8 == 34 || bit / 8 == 35) continue;
        EXPECT_NE(receive(frame), FrameError::none) << "bit " << bit;
      }
    }
  }
}

TEST(Crc, AFlippedCurrentHopNeverPassesForTheLastButOnItsWay) {
  Bytes frame = SampleFrame(64, 1).bytes();
  for (unsigned bit = 0; bit < 3; ++bit) {
    Bytes flipped = frame;
    flipped[43] = static_cast<std::uint8_t>(flipped[43] ^ (1U << bit));
    EXPECT_EQ(receive(flipped), FrameError::bad_hops);
  }
}

TEST(Crc, AFrameWithoutOneIsNotRight) {
  SampleFrame sample;
  Bytes headers(kMaxHeaderBytes);
  headers.resize(
      encode_frame(headers, sample.link, sample.routing, sample.transport, &sample.segment));
  EXPECT_FALSE(crc_is_right(headers, sample.payload));
  seal(headers, sample.payload);
  EXPECT_TRUE(crc_is_right(headers, sample.payload));
}

// The four bytes after which the CRC has a value of 0, by the division backwards.
Bytes payload_of_value_0(std::uint32_t crc_before) {
  std::uint32_t crc = 0xffffffffU;
  for (int bit = 0; bit < 32; ++bit) {
    crc = (crc >> 31) != 0 ? (crc ^ 0x82f63b78U) << 1 | 1 : crc << 1;
  }
  Bytes payload(4);
  store_little(payload.data(), crc ^ crc_before);
  return payload;
}

TEST(Crc, NeverComesOutAsTheMarkForNone) {
  Bytes headers(kSegmentHeaderBytes, 1);
  std::uint8_t* const field = headers.data() + headers.size() - kCrcBytes;
  seal(headers, {});
  const Bytes payload = payload_of_value_0(~load_little<std::uint32_t>(field));
  seal(headers, payload);
  EXPECT_EQ(load_little<std::uint32_t>(field), 0xffffffffU);
  EXPECT_TRUE(crc_is_right(headers, payload));
  store_little<std::uint32_t>(field, 0);
  EXPECT_FALSE(crc_is_right(headers, payload));
}

TEST(Relay, ReaddressingAndTheNextHopKeepTheFrameRight) {
  const LinkAddresses next{{2, 9, 9, 9, 9, 1}, {2, 9, 9, 9, 9, 2}, 0x0a010203, 0x0a010209};
  Bytes frame = SampleFrame(64, 3).bytes();
  ParsedFrame parsed;
  for (unsigned hop = 0; hop < 3; ++hop) {
    ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
    EXPECT_EQ(parsed.routing.hop_index, hop);
    EXPECT_EQ(destination_reached(parsed.routing), hop == 2);
    EXPECT_EQ(receive(frame), FrameError::none);
    if (hop == 2) break;
    advance_hop(frame);
    readdress(frame, next);
  }
  EXPECT_EQ(Bytes(frame.begin(), frame.begin() + 6), (Bytes{2, 9, 9, 9, 9, 2}));
  EXPECT_EQ(Bytes(frame.begin() + 26, frame.begin() + 34), (Bytes{10, 1, 2, 3, 10, 1, 2, 9}));
}

TEST(Switch, ACongestionMarkIsSeenAndKeepsTheFrameRight) {
  Bytes frame = SampleFrame().bytes();
  mark_congestion(frame);
  ParsedFrame parsed;
  ASSERT_EQ(parse_frame(frame, frame.size(), parsed), FrameError::none);
  EXPECT_TRUE(parsed.congestion_marked);
  EXPECT_EQ(receive(frame), FrameError::none);
}

}  // namespace
}  // namespace gradcube::protocol
