#include "control/plan/base/byte_range.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "tests/unit/control/stream_order.h"

namespace gradcube::control {
namespace {

TEST(ByteRange, PartsFillARangeInOrder) {
  for (const uint64_t count : {0U, 1U, 5U, 16U, 17U, 1000U}) {
    for (const uint64_t parts : {1U, 2U, 3U, 7U, 16U, 256U}) {
      uint64_t at = 100;
      for (uint64_t i = 0; i < parts; ++i) {
        const UnitRange one = part({100, count}, i, parts);
        ASSERT_EQ(one.begin, at) << count << " units in " << parts;
        at += one.count;
      }
      ASSERT_EQ(at, 100 + count);
    }
  }
}

TEST(ByteRange, PartsAreThoseOfTheExactProductHoweverLargeTheyAre) {
  const std::vector<uint64_t> counts = {0, 1, 99, 1 << 20, (1ULL << 40) + 12345, 1ULL << 58};
  for (const uint64_t count : counts) {
    for (const uint64_t parts : {3ULL, 256ULL, 99'991ULL, 0xfffffffbULL, 1ULL << 32}) {
      for (const uint64_t i : std::vector<uint64_t>{0, 1, 2, parts / 2, parts - 1}) {
        if (i >= parts) continue;
        ASSERT_EQ(part({7, count}, i, parts), wide_part({7, count}, i, parts))
            << count << " units, part " << i << " of " << parts;
      }
    }
  }
}

TEST(ByteRange, SlicesFillARangeInOrderAndAreOfOneLengthButForTheEnd) {
  for (const uint64_t count : {0ULL, 1ULL, 5ULL, 16ULL, 113ULL, 1ULL << 58}) {
    for (const uint64_t slices : {1ULL, 2ULL, 6ULL, 16ULL, 256ULL}) {
      const uint64_t each = slice({100, count}, 0, slices).count;
      uint64_t at = 100;
      for (uint64_t i = 0; i < slices; ++i) {
        const UnitRange one = slice({100, count}, i, slices);
        ASSERT_EQ(one.begin, at) << count << " units in " << slices;
        ASSERT_EQ(one.count, std::min(each, 100 + count - at)) << count << " units in " << slices;
        at += one.count;
      }
      ASSERT_EQ(at, 100 + count);
    }
  }
}

TEST(ByteRange, OnlyTheLastUnitOfABufferIsPartial) {
  EXPECT_EQ(units_of(0), (UnitRange{0, 0}));
  EXPECT_EQ(units_of(1), (UnitRange{0, 1}));
  EXPECT_EQ(units_of(64), (UnitRange{0, 1}));
  EXPECT_EQ(units_of(65), (UnitRange{0, 2}));
  EXPECT_EQ(bytes_of({0, 1}, 65), (ByteRange{0, 64}));
  EXPECT_EQ(bytes_of({1, 1}, 65), (ByteRange{64, 65}));
  EXPECT_EQ(bytes_of({2, 0}, 65), (ByteRange{65, 65}));
  EXPECT_EQ(bytes_of(units_of(UINT64_MAX), UINT64_MAX), (ByteRange{0, UINT64_MAX}));
}

}  // namespace
}  // namespace gradcube::control
