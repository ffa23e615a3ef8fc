// Links whose rate depends on their level: the sum is right, and takes about as long as the busiest
// link needs at its own rate. With bml's shares that is less than with equal ones, which hips:mesh
// has in the same steps.

#include <string>

#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

struct RatesCase {
  const char* name;
  const char* algorithm;
  const char* topology;
  const char* rates;
  double busiest_share;  // of the gradient, of the level that takes longest, in both stages
  double rate;           // of that level
};

class RatesByLevel : public testing::TestWithParam<RatesCase> {};

TEST_P(RatesByLevel, TakeTheTimeOfTheBusiestLink) {
  SimulatedCluster cluster(
      settings_of({{"topology", GetParam().topology}, {"rate", GetParam().rates}}));
  const control::Plan plan =
      control::make_plan(GetParam().algorithm, cluster.plan().topology(), "test");
  Collective collective;
  collective.count = 1'000'000;
  const Trainers trainers = cluster.join_all("rates", heap_for(collective), GetParam().algorithm);
  const double bound =
      GetParam().busiest_share * static_cast<double>(collective.bytes()) * 8e9 / GetParam().rate;
  const auto taken = static_cast<double>(allreduce(cluster, plan, trainers, collective));
  EXPECT_GT(taken, bound);
  EXPECT_LT(taken, 1.15 * bound);
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

constexpr const char* kEqual = "level0=100mbit,level1=100mbit";
constexpr const char* kFastBelow = "level0=400mbit,level1=100mbit";
constexpr const char* kFastAbove = "level0=100mbit,level1=400mbit";

INSTANTIATE_TEST_SUITE_P(
    Rates, RatesByLevel,
    testing::Values(
        RatesCase{"Equal", "bml", "bcube:3,2", kEqual, 16.0 / 18, 100e6},
        // Each level carries 4/9 of the gradient in each stage.
        RatesCase{"EqualShares", "hips:mesh", "bcube:3,2", kFastBelow, 16.0 / 18, 100e6},
        RatesCase{"EqualSharesOfRings", "hips:ring", "bcube:3,2", kFastAbove, 16.0 / 18, 100e6},
        // One thread has all, and leaves 2/9 for the slow level.
        RatesCase{"FastBelow", "bml", "bcube:3,2", kFastBelow, 4.0 / 9, 100e6},
        RatesCase{"FastAbove", "bml", "bcube:3,2", kFastAbove, 4.0 / 9, 100e6},
        // 5/6 and 1/6: both levels are equally full.
        RatesCase{"TwiceAsFast", "bml", "bcube:3,2", "level0=200mbit,level1=100mbit", 16.0 / 27,
                  100e6},
        // Level 1 carries half of the gradient in each stage, or a third if thread 0 has all.
        RatesCase{"EqualSharesOfMixedRadices", "hips:mesh", "bcube:3x2", kFastBelow, 1, 100e6},
        RatesCase{"MixedRadices", "bml", "bcube:3x2", kFastBelow, 2.0 / 3, 100e6},
        // Level 1 goes first and leaves a quarter: 3/16 of the gradient for level 0 in each stage.
        RatesCase{"BlueConnectFastAbove", "blueconnect", "bcube:4,2",
                  "level0=20mbit,level1=200mbit", 3.0 / 8, 20e6},
        // A ring of three goes one way round.
        RatesCase{"Torus", "blueconnect", "torus:3,1", "100mbit", 4.0 / 3, 100e6}),
    [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace gradcube::simulation
