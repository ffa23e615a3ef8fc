#include "control/hub/partition.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>

#include "tests/unit/protocol/seed.h"

namespace gradcube::control::hub {
namespace {

using Sizes = std::vector<std::uint64_t>;

std::uint64_t fullest(const Sizes& sizes, const std::vector<unsigned>& bins, std::size_t count) {
  Sizes loads(count, 0);
  for (std::size_t i = 0; i < sizes.size(); ++i) loads[bins[i]] += sizes[i];
  return *std::max_element(loads.begin(), loads.end());
}

// The least load that the fullest bin can have, by trial of every division.
std::uint64_t least_by_trial(const Sizes& sizes, std::size_t at, Sizes& loads) {
  if (at == sizes.size()) return *std::max_element(loads.begin(), loads.end());
  std::uint64_t least = UINT64_MAX;
  for (std::uint64_t& load : loads) {
    load += sizes[at];
    least = std::min(least, least_by_trial(sizes, at + 1, loads));
    load -= sizes[at];
  }
  return least;
}

TEST(Partition, GivesTheLongestFirstToTheLeastFull) {
  const Sizes sizes = {1, 5, 4, 3, 3};
  EXPECT_EQ(divide_longest_first(sizes, std::vector<unsigned>{1, 1}),
            (std::vector<unsigned>{1, 0, 1, 1, 0}));
}

TEST(Partition, ReachesItsBoundAndNoMoreOnGrahamsExample) {
  // The best is {3,3}, {2,2,2}, 6; LPT makes {3,2,2}, {3,2}: 7 = (4/3 - 1/6) 6.
  const Sizes sizes = {3, 3, 2, 2, 2};
  EXPECT_EQ(fullest(sizes, divide_longest_first(sizes, std::vector<unsigned>{1, 1}), 2), 7u);
}

TEST(Partition, StaysWithinFourThirdsOfTheBestOfAllDivisions) {
  const std::uint64_t seed = protocol::test_seed(1810);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (int round = 0; round < 400; ++round) {
    const std::size_t bins = 2 + random() % 3;
    Sizes sizes(1 + random() % 8);
    for (std::uint64_t& size : sizes) size = 1 + random() % (round % 2 == 0 ? 10 : 100'000);
    Sizes loads(bins, 0);
    const std::uint64_t best = least_by_trial(sizes, 0, loads);
    const auto divided = divide_longest_first(sizes, std::vector<unsigned>(bins, 1));
    // (4/3 - 1/(3m)) best, in whole numbers.
    ASSERT_LE(3 * bins * fullest(sizes, divided, bins), (4 * bins - 1) * best);
  }
}

TEST(Partition, FillsBinsByTheirWeights) {
  const Sizes sizes(1000, 7);
  const std::vector<unsigned> weights = {1, 3, 6};
  std::vector<unsigned> count(3, 0);
  for (const unsigned bin : divide_longest_first(sizes, weights)) ++count[bin];
  EXPECT_EQ(count, (std::vector<unsigned>{100, 300, 600}));
}

TEST(Partition, BreaksTiesByNumber) {
  EXPECT_EQ(divide_longest_first(Sizes{2, 2, 2, 2}, std::vector<unsigned>{5, 5, 5}),
            (std::vector<unsigned>{0, 1, 2, 0}));
  EXPECT_TRUE(divide_longest_first(Sizes{}, std::vector<unsigned>{1}).empty());
}

}  // namespace
}  // namespace gradcube::control::hub
