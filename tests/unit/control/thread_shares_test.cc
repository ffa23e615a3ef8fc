#include "control/plan/algorithms/thread_shares.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <string>

#include "control/plan/algorithms.h"
#include "control/plan/verify.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

// The time of the fullest level's links in one stage, for a buffer that the fastest link passes in
// a time of 1.
double fullest(const std::vector<LevelLinks>& levels, const std::vector<unsigned>& weights) {
  double fastest = 0;
  for (const LevelLinks& level : levels) fastest = std::max(fastest, level.rate_bps);
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  std::vector<double> times(levels.size(), 0);
  for (std::size_t thread = 0; thread < weights.size(); ++thread) {
    double left = weights[thread] / sum;
    for (std::size_t w = 0; w < levels.size(); ++w) {
      const std::size_t l = (thread + w) % levels.size();
      left /= levels[l].radix;
      times[l] += left * (levels[l].radix - 1) * fastest / levels[l].rate_bps;
    }
  }
  return *std::max_element(times.begin(), times.end());
}

// The least that any division of the buffer into so many parts gives.
double least_by_trial(const std::vector<LevelLinks>& levels, unsigned parts,
                      std::vector<unsigned> weights = {}) {
  if (weights.size() + 1 == levels.size()) {
    weights.push_back(parts);
    return fullest(levels, weights);
  }
  double least = 1e300;
  for (unsigned part = 0; part <= parts; ++part) {
    weights.push_back(part);
    least = std::min(least, least_by_trial(levels, parts - part, weights));
    weights.pop_back();
  }
  return least;
}

TEST(ThreadShares, AreEqualWhereRatesAre) {
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{3, 5}, {3, 5}}),
            (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{2, 5}, {3, 5}, {4, 5}}),
            (std::vector<unsigned>{1, 1, 1}));
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{2, 0}, {3, 0}}),
            (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{2, 0}, {3, 7}}),
            (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{9, 7}}), std::vector<unsigned>{1});
}

// On bcube:3,2 a thread sends 2/3 of its share over its first level and 2/9 over the other.
TEST(ThreadShares, MakeBothLevelsEquallyFullWhereTheyCan) {
  const std::vector<LevelLinks> levels = {{3, 200}, {3, 100}};
  // x/3 + y/9 = 2x/9 + 2y/3: x is 5/6.
  EXPECT_EQ(balanced_weights(levels), (std::vector<unsigned>{5, 1}));
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{3, 100}, {3, 200}}),
            (std::vector<unsigned>{1, 5}));
  EXPECT_NEAR(fullest(levels, {5, 1}), 5.0 / 9 + 1.0 / 27, 1e-12);
}

TEST(ThreadShares, LeaveOneThreadAlmostAllWhereALevelIsTheFullestAllTheSame) {
  EXPECT_EQ(balanced_weights(std::vector<LevelLinks>{{3, 400}, {3, 100}}),
            (std::vector<unsigned>{60'000, 1}));
}

TEST(ThreadShares, AreAsGoodAsAnyThatTrialFinds) {
  const std::uint64_t seed = protocol::test_seed(20181203);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (unsigned draw = 0; draw < 200; ++draw) {
    std::vector<LevelLinks> levels(2 + random() % 3);
    std::string text;
    for (LevelLinks& level : levels) {
      level = {static_cast<unsigned>(2 + random() % 7), static_cast<double>(1 + random() % 20)};
      text += std::to_string(level.radix) + " at " + std::to_string(level.rate_bps) + ", ";
    }
    levels.front().rate_bps += 20;  // not all are equal
    const double found = fullest(levels, balanced_weights(levels));
    const double tried = least_by_trial(levels, levels.size() == 4 ? 24 : 60);
    EXPECT_LT(found, tried * 1.01) << text;
    EXPECT_LE(found, fullest(levels, std::vector<unsigned>(levels.size(), 1)) * 1.01) << text;
    if (HasFailure()) break;
  }
}

TEST(ThreadShares, OfSevenLevelsAreNoWorseThanEqualOnes) {
  const std::vector<LevelLinks> levels = {{2, 100}, {2, 40}, {2, 10}, {2, 30},
                                          {2, 25},  {2, 7},  {2, 90}};
  const std::vector<unsigned> weights = balanced_weights(levels);
  EXPECT_LT(fullest(levels, weights), fullest(levels, std::vector<unsigned>(7, 1)));
  EXPECT_EQ(balanced_weights(levels), weights);
}

TEST(ThreadShares, AreThoseOfBmlOnATopologyWithRates) {
  const Topology cube = parse_topology("bcube:3,2", "test");
  const auto weights = [](const Topology& topology) {
    const Plan plan = make_plan("bml", topology, "test");
    verify(plan);
    return std::vector<unsigned>{plan.thread(0).weight, plan.thread(1).weight};
  };
  EXPECT_EQ(weights(cube), (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(weights(cube.with_rates({100, 100})), (std::vector<unsigned>{1, 1}));
  EXPECT_EQ(weights(cube.with_rates({200, 100})), (std::vector<unsigned>{5, 1}));
}

}  // namespace
}  // namespace gradcube::control
