#include "protocol/credit_budget.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>

namespace gradcube::protocol {
namespace {

// A round in which the first so many segments are marked, or were sent again. True if the budget
// has changed.
bool budget_round(CreditBudget& budget, std::uint64_t marked, std::uint64_t sent_again = 0) {
  bool changed = false;
  const std::uint64_t length = std::max<std::uint64_t>(budget.segments(), 8);
  for (std::uint64_t arrival = 0; arrival < length; ++arrival) {
    EXPECT_FALSE(changed) << "the round has ended early";
    changed = budget.on_arrival(arrival < marked, arrival < sent_again);
  }
  return changed;
}

// The budget after many rounds of so many marks.
std::uint64_t settled(std::uint64_t most, unsigned rounds, std::uint64_t marked_in_ten) {
  CreditBudget budget(most);
  for (unsigned round = 0; round < rounds; ++round) {
    budget_round(budget, budget.segments() * marked_in_ten / 10);
  }
  return budget.segments();
}

TEST(CreditBudget, WithoutASignalItStaysTheMost) {
  CreditBudget budget(100);
  EXPECT_EQ(budget.most(), 100U);
  for (int round = 0; round < 50; ++round) EXPECT_FALSE(budget_round(budget, 0));
  EXPECT_EQ(budget.segments(), 100U);
}

TEST(CreditBudget, IsNeverLessThanTheLeast) {
  EXPECT_EQ(CreditBudget(0).segments(), CreditBudget::kLeast);
  CreditBudget budget(50);
  for (int round = 0; round < 300; ++round) budget_round(budget, ~0ULL, ~0ULL);
  EXPECT_EQ(budget.segments(), CreditBudget::kLeast);
}

TEST(CreditBudget, MarksOfAllSegmentsOverManyRoundsHalveIt) {
  CreditBudget budget(100'000);
  for (int round = 0; round < 100; ++round) budget_round(budget, 0);
  // The smoothed share is all of them only after many rounds; meanwhile the budget shrinks.
  std::uint64_t before = 0;
  for (int round = 0; budget.segments() > 1'000; ++round) {
    ASSERT_LT(round, 200);
    before = budget.segments();
    budget_round(budget, ~0ULL);
  }
  const double left = static_cast<double>(budget.segments()) / static_cast<double>(before);
  EXPECT_GE(left, 0.5);
  EXPECT_LT(left, 0.8);
}

TEST(CreditBudget, TheFirstRoundOfMarksCountsASixteenth) {
  CreditBudget budget(3'200);
  EXPECT_TRUE(budget_round(budget, 3'200));
  EXPECT_EQ(budget.segments(), 3'100U);  // 3200 * (1 - 1 / 16 / 2)
}

TEST(CreditBudget, AThirdOfTheMarksShrinkItByAThird) {
  CreditBudget all(48'000);
  CreditBudget some(48'000);
  budget_round(all, 48'000);
  budget_round(some, 16'000);
  const std::uint64_t by_all = 48'000 - all.segments();
  const std::uint64_t by_some = 48'000 - some.segments();
  EXPECT_NEAR(static_cast<double>(by_all), 3.0 * static_cast<double>(by_some), 6);
}

TEST(CreditBudget, ASingleMarkTakesASegment) {
  CreditBudget budget(20);
  EXPECT_TRUE(budget_round(budget, 1));
  EXPECT_EQ(budget.segments(), 19U);
}

TEST(CreditBudget, FewMarksThatLastAreNotRoundedAway) {
  CreditBudget budget(100'000);
  std::uint64_t before = 0;
  for (int round = 0; round < 60; ++round) {
    before = budget.segments();
    budget_round(budget, before / 100);
  }
  const double taken = static_cast<double>(before - budget.segments());
  EXPECT_NEAR(taken / static_cast<double>(before), 0.005, 0.0005);
}

TEST(CreditBudget, MoreMarksLeaveLess) {
  EXPECT_GT(settled(1'000, 30, 1), settled(1'000, 30, 5));
  EXPECT_GT(settled(1'000, 30, 5), settled(1'000, 30, 10));
}

TEST(CreditBudget, GrowsByOneInEachRoundWithoutASignalUpToTheMost) {
  CreditBudget budget(40);
  for (int round = 0; round < 20 && budget.segments() > 30; ++round) budget_round(budget, ~0ULL);
  ASSERT_LE(budget.segments(), 30U);
  for (std::uint64_t expected = budget.segments() + 1; expected <= 40; ++expected) {
    EXPECT_TRUE(budget_round(budget, 0));
    EXPECT_EQ(budget.segments(), expected);
  }
  EXPECT_FALSE(budget_round(budget, 0));
  EXPECT_EQ(budget.segments(), 40U);
}

TEST(CreditBudget, TwoLossesInAHundredAreTakenForDamage) {
  CreditBudget budget(100);
  for (int round = 0; round < 50; ++round) EXPECT_FALSE(budget_round(budget, 0, 2));
  EXPECT_EQ(budget.segments(), 100U);
}

TEST(CreditBudget, MoreLossesHalveIt) {
  CreditBudget budget(100);
  EXPECT_TRUE(budget_round(budget, 0, 3));
  EXPECT_EQ(budget.segments(), 50U);
}

TEST(CreditBudget, LossesOfShortRoundsAreJudgedTogether) {
  CreditBudget budget(10);
  // One loss in ten rounds of ten is 1 %.
  for (int round = 0; round < 200; ++round) budget_round(budget, 0, round % 10 == 3 ? 1 : 0);
  EXPECT_EQ(budget.segments(), 10U);
  // One in each is 10 %. It counts once a hundred segments have arrived.
  for (int round = 0; round < 9; ++round) EXPECT_FALSE(budget_round(budget, 0, 1));
  EXPECT_TRUE(budget_round(budget, 0, 1));
  EXPECT_EQ(budget.segments(), 5U);
}

TEST(CreditBudget, LossesAndMarksInOneRoundHalveItOnce) {
  CreditBudget budget(100);
  budget_round(budget, 100, 100);
  EXPECT_EQ(budget.segments(), 50U);
}

TEST(CreditBudget, ARoundOfASmallBudgetIsEightArrivals) {
  CreditBudget budget(3);
  for (int arrival = 0; arrival < 7; ++arrival) EXPECT_FALSE(budget.on_arrival(true, false));
  EXPECT_TRUE(budget.on_arrival(true, false));
  EXPECT_EQ(budget.segments(), 2U);
}

}  // namespace
}  // namespace gradcube::protocol
