#include "control/model/mgwfbp_model.h"

#include <gtest/gtest.h>
#include <stdexcept>

#include "control/model/blueconnect_model.h"
#include "control/model/bml_model.h"

namespace gradcube::control::model {
namespace {

constexpr NodeCosts kCosts{.alpha = 1, .beta = 10, .gamma = 100};

void expect_cost(const AllReduceCost& cost, double a, double b) {
  EXPECT_DOUBLE_EQ(cost.a, a);
  EXPECT_DOUBLE_EQ(cost.b, b);
}

TEST(MgWfbpModel, HasEveryRowOfTable2) {
  expect_cost(binary_tree_cost(8, kCosts), 2 * 3, (2 * 10 + 100) * 3);
  expect_cost(recursive_doubling_cost(8, kCosts), 3, (10 + 100) * 3);
  expect_cost(halving_doubling_cost(8, kCosts), 2 * 3, 2 * 10 - (2 * 10 + 100) / 8.0 + 100);
  expect_cost(ring_cost(8, kCosts), 2 * 7, 2 * 7 / 8.0 * 10 + 7 / 8.0 * 100);
}

// Section V-A: the startup times of the ring on 2, 4 and 8 nodes of a cluster with 10GbE, in us.
TEST(MgWfbpModel, GivesTheStartupTimesOfThePapersCluster) {
  const NodeCosts costs{.alpha = 90.52 / 2};
  EXPECT_NEAR(ring_cost(2, costs).a, 90.52, 0.005);
  EXPECT_NEAR(ring_cost(4, costs).a, 271.56, 0.005);
  EXPECT_NEAR(ring_cost(8, costs).a, 633.64, 0.005);
}

TEST(MgWfbpModel, PrefersOneMessageToTwoOfTheSameBytes) {
  for (const auto& cost : {binary_tree_cost(4, kCosts), recursive_doubling_cost(4, kCosts),
                           halving_doubling_cost(4, kCosts), ring_cost(4, kCosts)}) {
    EXPECT_DOUBLE_EQ(cost.seconds(0), cost.a);
    EXPECT_GT(cost.seconds(200) + cost.seconds(400), cost.seconds(600));
    EXPECT_DOUBLE_EQ(cost.seconds(200) + cost.seconds(400) - cost.seconds(600), cost.a);
  }
}

TEST(MgWfbpModel, WithoutAdditionsAgreesWithBlueConnectAndBml) {
  const double rate = 10e9, bytes = 1e8, alpha = 5e-6;
  const NodeCosts costs{.alpha = alpha, .beta = 8 / rate};
  for (const std::uint64_t N : {2u, 3u, 9u, 64u}) {
    EXPECT_NEAR(ring_cost(N, costs).seconds(bytes), one_level_seconds(N, bytes, alpha, rate),
                1e-12);
    EXPECT_NEAR(ring_cost(N, costs).b * bytes, fat_tree_gst(N, bytes * 8 / rate), 1e-12);
  }
  EXPECT_NEAR(halving_doubling_cost(64, costs).seconds(bytes),
              halving_doubling_seconds(64, bytes, alpha, rate), 1e-12);
}

TEST(MgWfbpModel, RefusesNumbersOfNodesThatARowDoesNotHave) {
  for (const std::uint64_t N : {0u, 1u, 6u}) {
    EXPECT_THROW(binary_tree_cost(N, kCosts), std::invalid_argument);
    EXPECT_THROW(recursive_doubling_cost(N, kCosts), std::invalid_argument);
    EXPECT_THROW(halving_doubling_cost(N, kCosts), std::invalid_argument);
  }
  EXPECT_THROW(ring_cost(1, kCosts), std::invalid_argument);
  EXPECT_NO_THROW(ring_cost(6, kCosts));
}

}  // namespace
}  // namespace gradcube::control::model
