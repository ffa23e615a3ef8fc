#include "protocol/bitmap.h"

#include <gtest/gtest.h>

namespace gradcube::protocol {
namespace {

TEST(Bitmap128, AnEmptyOneHasNoBits) {
  const Bitmap128 empty;
  EXPECT_FALSE(empty.any());
  EXPECT_EQ(empty.count(), 0U);
  EXPECT_EQ(empty.lowest(), Bitmap128::kBits);
  EXPECT_EQ(empty.end(), 0U);
  EXPECT_EQ(empty.leading_run(), 0U);
}

TEST(Bitmap128, EverySingleBitIsFoundWhereItWasSet) {
  for (unsigned bit = 0; bit < Bitmap128::kBits; ++bit) {
    Bitmap128 one;
    one.set(bit);
    EXPECT_TRUE(one.test(bit));
    EXPECT_EQ(one.count(), 1U);
    EXPECT_EQ(one.lowest(), bit);
    EXPECT_EQ(one.end(), bit + 1);
    one.advance(bit);
    EXPECT_EQ(one.lowest(), 0U);
    one.clear(0);
    EXPECT_FALSE(one.any());
  }
}

TEST(Bitmap128, BelowAndItsRunAgreeForAllCounts) {
  for (unsigned count = 0; count <= Bitmap128::kBits; ++count) {
    const Bitmap128 bits = Bitmap128::below(count);
    EXPECT_EQ(bits.count(), count);
    EXPECT_EQ(bits.leading_run(), count);
    EXPECT_EQ(bits.end(), count);
  }
}

TEST(Bitmap128, ExtractGivesBackWhatWasPlaced) {
  constexpr std::uint64_t pattern = 0x8123456789abcdefU;
  for (unsigned offset = 0; offset <= 64; ++offset) {
    EXPECT_EQ(Bitmap128::placed(pattern, offset).extract(offset), pattern);
  }
  EXPECT_EQ(Bitmap128::placed(pattern, 65).extract(65), pattern & ~(1ULL << 63));
  EXPECT_FALSE(Bitmap128::placed(pattern, 128).any());
}

TEST(Bitmap128, AdvancingByAllLeavesNothing) {
  Bitmap128 all = Bitmap128::below(128);
  all.advance(128);
  EXPECT_FALSE(all.any());
}

}  // namespace
}  // namespace gradcube::protocol
