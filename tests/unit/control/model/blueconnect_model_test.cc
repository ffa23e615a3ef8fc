#include "control/model/blueconnect_model.h"

#include <gtest/gtest.h>
#include <limits>
#include <stdexcept>
#include <vector>

namespace gradcube::control::model {
namespace {

using Stages = std::vector<BlueConnectStage>;

// 8 bits per byte: a byte per second.
constexpr double kBytePerSecond = 8;
// With a second of latency, the seconds are the number of messages.
constexpr double kUnlimited = 1e300;

TEST(BlueConnectModel, CountsTheStepsOfARingAndOfHalving) {
  EXPECT_NEAR(ring_stage_seconds(12, 1, 1, kUnlimited), 11, 1e-9);
  EXPECT_NEAR(recursive_stage_seconds(16, 1, 1, kUnlimited), 4, 1e-9);
  EXPECT_NEAR(best_stage_seconds(16, 1, 1, kUnlimited), 4, 1e-9) << "a power of two";
  EXPECT_NEAR(best_stage_seconds(12, 1, 1, kUnlimited), 11, 1e-9) << "no power of two";
  EXPECT_NEAR(recursive_stage_seconds(3, 1, 1, kUnlimited), 2, 1e-9) << "rounds of 3";
  EXPECT_NEAR(broadcast_seconds(3, 1, 1, kUnlimited), 2 + 2, 1e-9);
}

TEST(BlueConnectModel, MovesAllButOneShareOfTheGradient) {
  EXPECT_DOUBLE_EQ(ring_stage_seconds(4, 100, 0, kBytePerSecond), 75);
  EXPECT_DOUBLE_EQ(recursive_stage_seconds(4, 100, 0, kBytePerSecond), 75);
  EXPECT_DOUBLE_EQ(broadcast_seconds(4, 100, 0, kBytePerSecond), 150);
  EXPECT_DOUBLE_EQ(one_level_seconds(4, 100, 0, kBytePerSecond), 150);
  EXPECT_DOUBLE_EQ(halving_doubling_seconds(4, 100, 0, kBytePerSecond), 150);
}

TEST(BlueConnectModel, OfOneLearnerTakesNoTime) {
  EXPECT_EQ(ring_stage_seconds(1, 100, 1, kBytePerSecond), 0);
  EXPECT_EQ(recursive_stage_seconds(1, 100, 1, kBytePerSecond), 0);
}

// Section 2.3, Figure 1: twelve learners, three in each node.
TEST(BlueConnectModel, ReducesToMastersAndBackInTwoLevels) {
  // 2 (T_c + T_r) of 3 learners, then 2 T_c of 4 masters.
  EXPECT_NEAR(two_level_seconds(3, 4, 1, 1, kUnlimited, kUnlimited), 2 * 4 + 2 * 2, 1e-9);
  // The masters' bandwidth is a quarter of that in the node.
  EXPECT_DOUBLE_EQ(two_level_seconds(3, 4, 120, 0, 4 * kBytePerSecond, kBytePerSecond),
                   4 * 2.0 / 3 * 120 / 4 + 2 * 0.75 * 120);
}

// Section 3.2.2, Figure 4: the stages have N, N/3 and N/6, and their streams w1/3 and w2/6.
TEST(BlueConnectModel, DividesDataAndBandwidthAsInThePapersExample) {
  const double w0 = 60 * kBytePerSecond, w1 = 30 * kBytePerSecond, w2 = 12 * kBytePerSecond;
  const Stages stages = {{3, w0}, {2, w1}, {2, w2}};
  const double expected = 2 * (2.0 / 3 * 360 / 60 + 1.0 / 2 * (360.0 / 3) / (30.0 / 3) +
                               1.0 / 2 * (360.0 / 6) / (12.0 / 6));
  EXPECT_DOUBLE_EQ(blueconnect_tree_seconds(stages, 360, 0), expected);
}

TEST(BlueConnectModel, KeepsToTheLeastBandwidthOfTheLevelsBelow) {
  const Stages slow_nodes = {{2, kBytePerSecond}, {2, 100 * kBytePerSecond}};
  EXPECT_DOUBLE_EQ(blueconnect_tree_seconds(slow_nodes, 8, 0), 2 * (0.5 * 8 + 0.5 * 4));
  EXPECT_DOUBLE_EQ(blueconnect_torus_seconds(slow_nodes, 8, 0), 2 * (0.5 * 8 + 0.5 * 4));
}

TEST(BlueConnectModel, OnATorusSharesACableAmongTheLearnersOfOneNodeOnly) {
  const Stages stages = {
      {2, 100 * kBytePerSecond}, {2, 4 * kBytePerSecond}, {2, 4 * kBytePerSecond}};
  const double inside = 0.5 * 80 / 100;
  EXPECT_DOUBLE_EQ(blueconnect_torus_seconds(stages, 80, 0),
                   2 * (inside + 0.5 * 40 / 2 + 0.5 * 20 / 2));
  EXPECT_DOUBLE_EQ(blueconnect_tree_seconds(stages, 80, 0),
                   2 * (inside + 0.5 * 40 / 2 + 0.5 * 20 / 1));
}

TEST(BlueConnectModel, TakesNoLongerThanARingWhereUplinksCarryAllThatIsBelow) {
  // "to ideally match the total uplink bandwidth from all the hanging nodes" (section 2.2)
  const Stages stages = {{3, kBytePerSecond}, {2, 3 * kBytePerSecond}, {2, 6 * kBytePerSecond}};
  EXPECT_NEAR(blueconnect_tree_seconds(stages, 360, 0),
              one_level_seconds(12, 360, 0, kBytePerSecond), 1e-9);
}

// Section 3.2.2: 96 learners are no power of two, but 16 x 6 lets the first stage halve.
TEST(BlueConnectModel, HasFewerStepsThanTwoLevelsAndThanOneRing) {
  const Stages stages = {{16, kUnlimited}, {6, kUnlimited}};
  const double blueconnect = blueconnect_tree_seconds(stages, 1, 1);
  EXPECT_NEAR(blueconnect, 2 * 4 + 2 * 5, 1e-9);
  EXPECT_LT(blueconnect, two_level_seconds(16, 6, 1, 1, kUnlimited, kUnlimited));
  EXPECT_LT(blueconnect, one_level_seconds(96, 1, 1, kUnlimited));
}

// Section 4.1 measures "about 1.6x" of NCCL's ring on two systems of four GPUs with PCIe gen3 (126
// Gbit/s, which the paper does not say) and 10 Gbit/s Ethernet between them.
TEST(BlueConnectModel, IsFasterThanARingAboutAsMeasuredOnThePapersIntelSystems) {
  const Stages stages = {{4, 126e9}, {2, 10e9}};
  const double ratio =
      one_level_seconds(8, 1e8, 0, 10e9) / blueconnect_tree_seconds(stages, 1e8, 0);
  EXPECT_NEAR(ratio, 1.6, 0.05);
}

TEST(BlueConnectModel, RefusesWhatIsNoDecomposition) {
  EXPECT_THROW(ring_stage_seconds(0, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW(recursive_stage_seconds(0, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW(ring_stage_seconds(2, 1, 0, 0), std::invalid_argument) << "no bandwidth";
  EXPECT_THROW(ring_stage_seconds(2, -1, 0, 1), std::invalid_argument);
  EXPECT_THROW(ring_stage_seconds(2, std::numeric_limits<double>::quiet_NaN(), 0, 1),
               std::invalid_argument);
  EXPECT_THROW(halving_doubling_seconds(12, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW(halving_doubling_seconds(0, 1, 0, 1), std::invalid_argument);
  EXPECT_THROW(blueconnect_tree_seconds({}, 1, 0), std::invalid_argument);
  EXPECT_THROW(blueconnect_tree_seconds(Stages{{1, 1}, {2, 1}}, 1, 0), std::invalid_argument);
  EXPECT_THROW(blueconnect_torus_seconds(Stages{{1, 1}, {1, 1}}, 1, 0), std::invalid_argument);
  EXPECT_NO_THROW(blueconnect_torus_seconds(Stages{{1, 1}, {2, 1}}, 1, 0));
}

}  // namespace
}  // namespace gradcube::control::model
