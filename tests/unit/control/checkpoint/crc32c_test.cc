#include "control/checkpoint/crc32c.h"

#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string_view>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

using Bytes = std::vector<std::uint8_t>;

std::uint32_t by_table(std::span<const std::uint8_t> bytes) {
  return crc32c_end(extend_crc32c_by_table(kCrc32cBegin, bytes));
}

TEST(Crc32c, IsTheStandards) {
  Bytes ascending(32);
  std::iota(ascending.begin(), ascending.end(), std::uint8_t{0});
  const Bytes descending(ascending.rbegin(), ascending.rend());
  constexpr std::string_view kDigits = "123456789";
  const struct {
    Bytes bytes;
    std::uint32_t crc;
  } examples[] = {{{}, 0},  // RFC 3720, B.4; the digits are of the catalogues of CRCs
                  {Bytes(32), 0x8a9136aa},
                  {Bytes(32, 0xff), 0x62a8ab43},
                  {ascending, 0x46dd794e},
                  {descending, 0x113fdb5c},
                  {{kDigits.begin(), kDigits.end()}, 0xe3069283}};
  for (const auto& example : examples) {
    EXPECT_EQ(crc32c(example.bytes), example.crc);
    EXPECT_EQ(by_table(example.bytes), example.crc);
  }
}

TEST(Crc32c, IsTheSameByInstructionAndByTable) {
  const std::uint64_t seed = protocol::test_seed(std::random_device{}());
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2000; ++round) {
    // Of exactly its size, so that a sanitizer sees a read outside.
    const std::size_t shift = random() % 16;
    Bytes memory(shift + random() % 700);
    for (std::uint8_t& byte : memory) byte = static_cast<std::uint8_t>(random());
    const std::span<const std::uint8_t> bytes = std::span(memory).subspan(shift);
    const auto before = static_cast<std::uint32_t>(random());
    ASSERT_EQ(extend_crc32c(before, bytes), extend_crc32c_by_table(before, bytes))
        << bytes.size() << " bytes, " << shift << " behind an aligned place";
  }
}

TEST(Crc32c, IsTheSameWhereverBytesAreCutInTwo) {
  Bytes bytes(100);
  std::iota(bytes.begin(), bytes.end(), std::uint8_t{200});
  const std::uint32_t whole = crc32c(bytes);
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    const std::uint32_t first = extend_crc32c(kCrc32cBegin, std::span(bytes).first(cut));
    EXPECT_EQ(crc32c_end(extend_crc32c(first, std::span(bytes).subspan(cut))), whole) << cut;
  }
}

}  // namespace
}  // namespace gradcube::control
