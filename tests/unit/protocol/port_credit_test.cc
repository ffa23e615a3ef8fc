#include "protocol/port_credit.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <gtest/gtest.h>
#include <thread>
#include <vector>

namespace gradcube::protocol {
namespace {

constexpr std::uint64_t kAll = 1'000;  // more than any budget here

CreditSettings segments_of_100(std::uint64_t budget) {
  return {.budget_bytes = budget * 100, .segment_bytes = 100};
}

TEST(PortCredit, CountsItsBudgetInWholeSegments) {
  EXPECT_EQ(PortCredit({.budget_bytes = 399, .segment_bytes = 100}).most(), 3U);
  EXPECT_FALSE(PortCredit(segments_of_100(3)).unlimited());
  EXPECT_TRUE(PortCredit(CreditSettings{}).unlimited());
}

TEST(PortCredit, AnEngineMayUseAllThatNoOtherWants) {
  PortCredit port(segments_of_100(10));
  EXPECT_EQ(port.take(0, {}, 0, 4, 10), 4U);
  EXPECT_EQ(port.take(0, {}, 4, kAll, 10), 6U);
  EXPECT_EQ(port.take(0, {}, 10, kAll, 10), 0U);
  EXPECT_EQ(port.outstanding(), 10U);
  port.give_back(3);
  EXPECT_EQ(port.take(0, {}, 7, kAll, 10), 3U);
}

TEST(PortCredit, EnginesThatWantSomeForDifferentJobsGetEqualParts) {
  PortCredit port(segments_of_100(12));
  port.set_wanting(0, true);
  port.set_wanting(1, true);
  port.set_wanting(2, true);
  EXPECT_EQ(port.take(0, {.job = 1, .step = 7}, 0, kAll, 12), 4U);
  EXPECT_EQ(port.take(1, {.job = 2, .step = 0}, 0, kAll, 12), 4U);
  EXPECT_EQ(port.take(0, {.job = 1, .step = 7}, 4, kAll, 12), 0U);
  EXPECT_EQ(port.take(2, {.job = 3, .step = 3}, 0, kAll, 12), 4U);
}

TEST(PortCredit, AnEngineThatWantsNoMoreHasNoPart) {
  PortCredit port(segments_of_100(12));
  port.set_wanting(0, true);
  port.set_wanting(1, true);
  EXPECT_EQ(port.take(0, {}, 0, kAll, 12), 6U);
  port.set_wanting(1, false);
  EXPECT_EQ(port.take(0, {}, 6, kAll, 12), 6U);
}

TEST(PortCredit, AnEngineWithMoreThanItsPartGetsNothingUntilItHasLess) {
  PortCredit port(segments_of_100(12));
  ASSERT_EQ(port.take(0, {.job = 1}, 0, kAll, 12), 12U);
  port.set_wanting(0, true);
  EXPECT_EQ(port.take(1, {.job = 2}, 0, kAll, 12), 0U);
  port.set_wanting(1, true);
  port.give_back(6);
  EXPECT_EQ(port.take(0, {.job = 1}, 6, kAll, 12), 0U);
  EXPECT_EQ(port.take(1, {.job = 2}, 0, kAll, 12), 6U);
  port.give_back(1);
  EXPECT_EQ(port.take(0, {.job = 1}, 5, kAll, 12), 1U);
}

TEST(PortCredit, EqualRanksOfAJobGetEqualParts) {
  PortCredit port(segments_of_100(12));
  port.set_wanting(0, true);
  port.set_wanting(1, true);
  EXPECT_EQ(port.take(0, {.job = 1, .step = 2}, 0, kAll, 12), 6U);
  EXPECT_EQ(port.take(1, {.job = 1, .step = 2}, 0, kAll, 12), 6U);
}

TEST(PortCredit, TheLowerRankOfAJobIsServedFirstAndTheOtherKeepsASegment) {
  PortCredit port(segments_of_100(12));
  port.set_wanting(0, true);
  port.set_wanting(1, true);
  port.take(0, {.job = 1, .step = 0}, 0, 1, 12);  // the other now knows its rank
  EXPECT_EQ(port.take(1, {.job = 1, .step = 3}, 0, kAll, 12), 1U);
  EXPECT_EQ(port.take(1, {.job = 1, .step = 3}, 1, kAll, 12), 0U);
  EXPECT_EQ(port.take(0, {.job = 1, .step = 0}, 1, kAll, 12), 10U);
}

TEST(PortCredit, AnEngineWithNothingGetsASegmentAboveItsBudgetButNotAboveThePorts) {
  PortCredit port(segments_of_100(12));
  ASSERT_EQ(port.take(0, {.job = 1}, 0, 11, 12), 11U);
  EXPECT_TRUE(port.has_room(0, 4));
  EXPECT_FALSE(port.has_room(1, 4));
  EXPECT_EQ(port.take(1, {.job = 2}, 1, kAll, 4), 0U);
  EXPECT_EQ(port.take(1, {.job = 2}, 0, kAll, 4), 1U);
  EXPECT_FALSE(port.has_room(0, 4));
  EXPECT_EQ(port.take(2, {.job = 2}, 0, kAll, 4), 0U);
  EXPECT_EQ(port.outstanding(), 12U);
}

// Each engine takes what it gets and gives some of it back, in turns of its own.
TEST(PortCredit, TheSumNeverExceedsTheBudgetHoweverManyThreadsTakeAtOnce) {
  constexpr std::uint64_t kBudget = 24;
  constexpr unsigned kEngines = 4;
  constexpr int kTurns = 20'000;
  PortCredit port(segments_of_100(kBudget));
  std::atomic<std::uint64_t> held{0};  // never more than the port's own sum
  std::atomic<std::uint64_t> most_held{0};
  const auto run = [&](unsigned engine) {
    std::uint64_t has = 0;
    for (int turn = 0; turn < kTurns; ++turn) {
      const CreditRank rank{.job = engine % 2, .step = static_cast<std::uint16_t>(turn % 3)};
      const std::uint64_t wanted = 1 + static_cast<std::uint64_t>(turn) % 9;
      const std::uint64_t got = port.take(engine, rank, has, wanted, kBudget);
      port.set_wanting(engine, got < wanted);
      has += got;
      const std::uint64_t sum = held.fetch_add(got) + got;
      std::uint64_t most = most_held.load();
      while (sum > most && !most_held.compare_exchange_weak(most, sum)) {
      }
      const std::uint64_t back = std::min<std::uint64_t>(has, 1 + static_cast<unsigned>(turn) % 5);
      held.fetch_sub(back);
      port.give_back(back);
      has -= back;
    }
    held.fetch_sub(has);
    port.give_back(has);
    port.set_wanting(engine, false);
  };
  std::vector<std::thread> threads;
  for (unsigned engine = 0; engine < kEngines; ++engine) threads.emplace_back(run, engine);
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(most_held.load(), kBudget);
  // How much each engine gets depends on the scheduler: one may hold the budget while it sleeps.
  EXPECT_GT(most_held.load(), 0U);
  EXPECT_EQ(port.outstanding(), 0U);
  EXPECT_EQ(port.take(0, {}, 0, kAll, kBudget), kBudget) << "nothing is lost";
}

}  // namespace
}  // namespace gradcube::protocol
