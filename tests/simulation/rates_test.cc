// Links whose rate depends on their level: the sum is right, and takes about as long as the busiest
// link needs at its own rate, which the faster ones do not change.

#include <string>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

struct Case {
  const char* name;
  const char* topology;
  const char* rates;
  double busiest_share;  // of the gradient, of the level that takes longest, in both stages
  double rate;           // of that level
};

class RatesByLevel : public testing::TestWithParam<Case> {};

TEST_P(RatesByLevel, TakeTheTimeOfTheBusiestLink) {
  SimulatedCluster cluster(
      settings_of({{"topology", GetParam().topology}, {"rate", GetParam().rates}}));
  Collective collective;
  collective.count = 1'000'000;
  const Trainers trainers = cluster.join_all("rates", heap_for(collective));
  const double bound =
      GetParam().busiest_share * static_cast<double>(collective.bytes()) * 8e9 / GetParam().rate;
  const auto taken = static_cast<double>(allreduce(cluster, trainers, collective));
  EXPECT_GT(taken, bound);
  EXPECT_LT(taken, 1.15 * bound);
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

INSTANTIATE_TEST_SUITE_P(
    Rates, RatesByLevel,
    testing::Values(
        Case{"Equal", "bcube:3,2", "level0=100mbit,level1=100mbit", 16.0 / 18, 100e6},
        Case{"FastBelow", "bcube:3,2", "level0=400mbit,level1=100mbit", 16.0 / 18, 100e6},
        Case{"FastAbove", "bcube:3,2", "level0=100mbit,level1=400mbit", 16.0 / 18, 100e6},
        // Level 1 carries half of the gradient in each stage, level 0 a third.
        Case{"OnMixedRadices", "bcube:3x2", "level0=400mbit,level1=100mbit", 1, 100e6}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradcube::simulation
