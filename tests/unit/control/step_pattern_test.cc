#include "control/plan/base/step_pattern.h"

#include <gtest/gtest.h>
#include <set>
#include <stdexcept>

namespace gradcube::control {
namespace {

TEST(StepPattern, OfAMeshNamesEachPeerByOneOffsetAndBack) {
  for (const unsigned radix : {2u, 3u, 16u, 256u}) {
    for (unsigned own = 0; own < radix; ++own) {
      std::set<unsigned> digits;
      for (unsigned r = 1; r < radix; ++r) {
        const unsigned digit = step_pattern::digit_at_offset(radix, own, r);
        ASSERT_NE(digit, own);
        ASSERT_EQ(step_pattern::offset_of_digit(radix, own, digit), r);
        digits.insert(digit);
      }
      ASSERT_EQ(digits.size(), radix - 1);
    }
  }
}

TEST(StepPattern, OfAMeshAddsByAscendingDigitWhoeverAdds) {
  for (unsigned own = 0; own < 5; ++own) {
    for (unsigned i = 0; i < 5; ++i) {
      const unsigned offset = step_pattern::summand(5, own, i);
      EXPECT_EQ(step_pattern::digit_at_offset(5, own, offset), i);
    }
  }
}

TEST(PlanStep, ReadsAndSetsADigitOfARank) {
  const PlanStep step{3, 4, Pattern::mesh};
  EXPECT_EQ(step.digit(11), 2u);
  EXPECT_EQ(step.with_digit(11, 0), 3u);
  EXPECT_EQ(step.with_digit(3, 2), 11u);
  EXPECT_EQ(step.with_digit(15, 1), 19u);
}

TEST(Pattern, IsFoundByName) {
  for (const Pattern pattern : kPatterns) {
    EXPECT_EQ(pattern_named(pattern_name(pattern)), pattern);
  }
  EXPECT_EQ(pattern_named(""), std::nullopt);
  EXPECT_EQ(pattern_named("local"), std::nullopt);
  EXPECT_EQ(pattern_named("meshes"), std::nullopt);
}

}  // namespace
}  // namespace gradcube::control
