// The MAC: what it is made of, and what it is of.
#include "protocol/mac.h"

#include <algorithm>
#include <array>
#include <gtest/gtest.h>
#include <random>
#include <vector>

#include "protocol/bytes.h"
#include "protocol/kernels/ghash_vpclmul.h"
#include "protocol/kernels/mac_portable.h"
#include "protocol/link_frame.h"
#include "tests/unit/protocol/sample_frame.h"

namespace gradcube::protocol {
namespace {

using Bytes = std::vector<std::uint8_t>;

MacBlock block(std::initializer_list<unsigned> bytes) {
  MacBlock result{};
  std::transform(bytes.begin(), bytes.end(), result.begin(),
                 [](unsigned byte) { return static_cast<std::uint8_t>(byte); });
  return result;
}

// FIPS 197, appendix C.1.
TEST(PortableMac, EncryptsAsAes) {
  const MacBlock key = block({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15});
  const MacBlock text = block({0x00, 0x11, 0x22, 0x33, 0x44, 0x55, 0x66, 0x77, 0x88, 0x99, 0xaa,
                               0xbb, 0xcc, 0xdd, 0xee, 0xff});
  EXPECT_EQ(aes128_portable(key, text), block({0x69, 0xc4, 0xe0, 0xd8, 0x6a, 0x7b, 0x04, 0x30, 0xd8,
                                               0xcd, 0xb7, 0x80, 0x70, 0xb4, 0xc5, 0x5a}));
}

// Test case 2 of the specification of GCM (McGrew and Viega), with its block of lengths.
TEST(PortableMac, HashesAsGcm) {
  const MacBlock key = block({0x66, 0xe9, 0x4b, 0xd4, 0xef, 0x8a, 0x2c, 0x3b, 0x88, 0x4c, 0xfa,
                              0x59, 0xca, 0x34, 0x2b, 0x2e});
  const MacBlock text = block({0x03, 0x88, 0xda, 0xce, 0x60, 0xb6, 0xa3, 0x92, 0xf3, 0x28, 0xc2,
                               0xb9, 0x71, 0xb2, 0xfe, 0x78});
  const MacBlock lengths = block({0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x80});
  EXPECT_EQ(ghash_portable(key, ghash_portable(key, {}, text), lengths),
            block({0xf3, 0x8c, 0xbb, 0x1a, 0xd6, 0x92, 0x23, 0xdc, 0xc3, 0x45, 0x7a, 0xe5, 0xb6,
                   0xb0, 0xf8, 0x85}));
}

TEST(MacKernel, IsThePortableOneForEveryLength) {
  std::mt19937_64 random(11);
  const auto draw = [&random] {
    MacBlock drawn;
    for (std::uint8_t& byte : drawn) byte = static_cast<std::uint8_t>(random());
    return drawn;
  };
  std::vector<std::size_t> lengths = {1023, 1024, 1408, 4097, 8896};
  for (std::size_t length = 0; length <= 300; ++length) lengths.push_back(length);
  for (const std::size_t length : lengths) {
    const MacBlock hash_key = draw();
    const MacBlock cipher_key = draw();
    const MacBlock last = draw();
    const std::size_t offset = random() % 16;
    Bytes bytes(offset + length);
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
    const std::span<const std::uint8_t> all = std::span(bytes).subspan(offset);
    const auto first = all.first(std::min<std::size_t>(length, random() % 80));
    const auto second = all.subspan(first.size());
    MacBlock hash = ghash_portable(hash_key, ghash_portable(hash_key, {}, first), second);
    for (std::size_t i = 0; i < hash.size(); ++i) hash[i] ^= last[i];
    const MacBlock expected = aes128_portable(cipher_key, hash);
    ASSERT_EQ(MacKernel(hash_key, cipher_key)(first, second, last),
              load_little<std::uint64_t>(expected.data()))
        << length;
  }
}

#if defined(__x86_64__)
// In the place of ipsec-mb's on some CPUs.
TEST(GhashVpclmul, IsThePortableOneForEveryLengthAndGoesOnFromAnyHash) {
  if (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("vpclmulqdq") == 0) {
    GTEST_SKIP() << "this CPU has no VPCLMULQDQ";
  }
  std::mt19937_64 random(12);
  const auto draw = [&random](std::span<std::uint8_t> bytes) {
    for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  };
  for (std::size_t length = 0; length <= 600; ++length) {
    MacBlock key;
    MacBlock hash;
    Bytes bytes(length);
    draw(key);
    draw(hash);
    draw(bytes);
    alignas(64) std::array<std::uint8_t, kGhashTableBytes> table;
    expand_ghash_key(key.data(), table.data());
    const MacBlock expected = ghash_portable(key, hash, bytes);
    extend_ghash(table.data(), bytes.data(), length, hash.data());
    ASSERT_EQ(hash, expected) << length;
  }
}
#endif

constexpr FrameSecret kSecret = {1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15, 16,
                                 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32};
constexpr MacContext kContext = {0x100000002, 0x300000004, 5};

struct Sealed {
  explicit Sealed(unsigned hops = 1, bool is_segment = true, std::size_t payload = 64) {
    sample = SampleFrame(is_segment ? payload : 0, hops);
    sample.routing.authenticated = true;
    headers.resize(kMaxHeaderBytes);
    headers.resize(encode_frame(headers, sample.link, sample.routing, sample.transport,
                                is_segment ? &sample.segment : nullptr));
    FrameKey(kSecret).seal(headers, sample.payload, kContext);
  }

  SampleFrame sample;
  Bytes headers;
};

TEST(Mac, IsRightForWhoHasTheKey) {
  for (const unsigned hops : {1U, 3U, 8U}) {
    for (const bool is_segment : {false, true}) {
      const Sealed frame(hops, is_segment);
      const FrameType type = is_segment ? FrameType::segment : FrameType::acknowledgement;
      EXPECT_EQ(frame.headers.size(), header_bytes(type, hops, true));
      EXPECT_TRUE(FrameKey(kSecret).is_right(frame.headers, frame.sample.payload, kContext));
    }
  }
}

TEST(Mac, OfAnotherKeyIsWrong) {
  const Sealed frame;
  for (std::size_t byte = 0; byte < kSecret.size(); ++byte) {
    FrameSecret other = kSecret;
    other[byte] ^= 1;
    EXPECT_FALSE(FrameKey(other).is_right(frame.headers, frame.sample.payload, kContext)) << byte;
  }
}

TEST(Mac, IsWrongOnceAnyBitIsFlippedThatNoRelayChanges) {
  const FrameKey key(kSecret);
  for (const unsigned hops : {1U, 4U}) {
    const Sealed good(hops);
    for (std::size_t bit = 8 * kOuterHeaderBytes; bit < 8 * good.headers.size(); ++bit) {
      Bytes headers = good.headers;
      headers[bit / 8] = static_cast<std::uint8_t>(headers[bit / 8] ^ (1U << (bit % 8)));
      const bool is_current_hop = bit / 8 == 43 && bit % 8 < 3;
      EXPECT_EQ(key.is_right(headers, good.sample.payload, kContext), is_current_hop) << bit;
    }
    for (std::size_t bit = 0; bit < 8 * good.sample.payload.size(); ++bit) {
      Bytes payload = good.sample.payload;
      payload[bit / 8] = static_cast<std::uint8_t>(payload[bit / 8] ^ (1U << (bit % 8)));
      EXPECT_FALSE(key.is_right(good.headers, payload, kContext)) << bit;
    }
  }
}

TEST(Mac, CoversWhatTheFrameDoesNotSay) {
  const FrameKey key(kSecret);
  const Sealed frame;
  const auto is_right = [&](const MacContext& context) {
    return key.is_right(frame.headers, frame.sample.payload, context);
  };
  EXPECT_FALSE(is_right({kContext.sequence + (std::uint64_t{1} << 32), kContext.acknowledged, 5}))
      << "the sequence has wrapped around";
  EXPECT_FALSE(is_right({kContext.sequence, kContext.acknowledged - (std::uint64_t{1} << 32), 5}));
  EXPECT_FALSE(is_right({kContext.sequence, kContext.acknowledged, 13})) << "another hub";
}

TEST(Mac, TellsBytesOfZeroFromNone) {
  const FrameKey key(kSecret);
  Sealed frame;
  const Bytes zeros(16, 0);
  for (std::size_t length = 0; length < zeros.size(); ++length) {
    key.seal(frame.headers, std::span(zeros).first(length));
    EXPECT_TRUE(key.is_right(frame.headers, std::span(zeros).first(length)));
    EXPECT_FALSE(key.is_right(frame.headers, std::span(zeros).first(length + 1))) << length;
  }
}

TEST(Mac, StaysRightBehindARelayAndASwitch) {
  Sealed frame(3);
  advance_hop(frame.headers);
  readdress(frame.headers, {{9, 9, 9, 9, 9, 9}, {8, 8, 8, 8, 8, 8}, 7, 6});
  mark_congestion(frame.headers);
  EXPECT_TRUE(FrameKey(kSecret).is_right(frame.headers, frame.sample.payload, kContext));
}

TEST(Check, TakesNoCrcWhereThereIsAKeyAndNoMacWhereThereIsNone) {
  const FrameKey key(kSecret);
  const ServerKeys keys(key);
  const SampleFrame sample;
  for (const ServerKeys* with : {&keys, static_cast<const ServerKeys*>(nullptr)}) {
    Bytes frame(kMaxHeaderBytes);
    frame.resize(write_path_probe(frame, sample.link, sample.routing, kFirstSourcePort, {1}, with));
    EXPECT_EQ(frame.size(), header_bytes(FrameType::path_probe, 1, with != nullptr));
    EXPECT_EQ(check(frame, {}, &keys), with != nullptr ? FrameError::none : FrameError::bad_mac);
    EXPECT_EQ(check(frame, {}, nullptr), with == nullptr ? FrameError::none : FrameError::bad_crc);
  }
}

TEST(ServerKeys, MakeMacsByOneKeyAndTakeThemByBothAsLongAsTheyChange) {
  const FrameKey former(kSecret);
  const FrameKey next(FrameSecret{9});
  ServerKeys keys(former);
  const auto probe_of = [](const ServerKeys& of) {
    const SampleFrame sample;
    Bytes frame(kMaxHeaderBytes);
    frame.resize(write_path_probe(frame, sample.link, sample.routing, kFirstSourcePort, {1}, &of));
    return frame;
  };
  const auto takes = [&](const FrameKey& key) {
    return check(probe_of(ServerKeys(key)), {}, &keys) == FrameError::none;
  };
  EXPECT_TRUE(takes(former));
  EXPECT_FALSE(takes(next));
  keys.also_take(&next);
  EXPECT_TRUE(takes(former) && takes(next));
  EXPECT_EQ(probe_of(keys), probe_of(ServerKeys(former)));
  keys.exchange();
  EXPECT_TRUE(takes(former) && takes(next));
  EXPECT_EQ(probe_of(keys), probe_of(ServerKeys(next)));
  keys.also_take(nullptr);
  EXPECT_FALSE(takes(former));
  EXPECT_TRUE(takes(next));
}

}  // namespace
}  // namespace gradcube::protocol
