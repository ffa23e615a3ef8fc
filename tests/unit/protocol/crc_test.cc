#include "protocol/crc.h"

#include <gtest/gtest.h>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

// Bit by bit, as the polynomial division is defined.
std::uint32_t reference(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) {
    crc ^= byte;
    for (int bit = 0; bit < 8; ++bit) {
      crc = crc >> 1 ^ ((crc & 1) != 0 ? 0x82f63b78U : 0);
    }
  }
  return crc;
}

std::vector<std::uint8_t> random_bytes(std::size_t length, std::mt19937_64& random) {
  std::vector<std::uint8_t> bytes(length);
  for (std::uint8_t& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return bytes;
}

TEST(Crc32c, HasTheStandardsCheckValue) {
  const std::string digits = "123456789";  // RFC 3720 and the catalogues of CRCs: e3069283
  const auto* bytes = reinterpret_cast<const std::uint8_t*>(digits.data());
  EXPECT_EQ(~extend_crc(0xffffffffU, {bytes, digits.size()}), 0xe3069283U);
}

TEST(Crc32c, HasTheBitsOfTheDivisionForEveryLengthAndAlignment) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (std::size_t length = 0; length <= 1400; ++length) {
    // Of exactly its size, so that a sanitizer sees a read outside.
    const std::size_t shift = random() % 64;
    const std::vector<std::uint8_t> memory = random_bytes(shift + length, random);
    const std::span<const std::uint8_t> bytes = std::span(memory).subspan(shift);
    const auto before = static_cast<std::uint32_t>(random());
    ASSERT_EQ(extend_crc(before, bytes), reference(before, bytes)) << length;
  }
}

TEST(Crc32c, HasTheBitsOfTheDivisionAtTheLengthsOfSegments) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t length : {1408U, 4096U, 8192U, 8896U, 8904U, 65531U}) {
    const std::vector<std::uint8_t> bytes = random_bytes(length, random);
    ASSERT_EQ(extend_crc(0xffffffffU, bytes), reference(0xffffffffU, bytes)) << length;
  }
}

TEST(Crc32c, IsTheSameWhereverBytesAreCutInTwo) {
  const std::uint64_t seed = test_seed(std::random_device{}());
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::vector<std::uint8_t> bytes = random_bytes(900, random);
  const std::uint32_t whole = extend_crc(1, bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
    const std::uint32_t first = extend_crc(1, std::span(bytes).first(cut));
    ASSERT_EQ(extend_crc(first, std::span(bytes).subspan(cut)), whole) << cut;
  }
}

}  // namespace
}  // namespace gradcube::protocol
