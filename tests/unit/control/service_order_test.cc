#include "control/plan/service_order.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"

namespace gradcube::control {
namespace {

constexpr unsigned kSteps = 9;  // more than any of these plans has

std::vector<unsigned> places(const std::string& algorithm, const std::string& topology,
                             unsigned thread, Stage stage = Stage::aggregation) {
  const Plan plan = make_plan(algorithm, parse_topology(topology, "test"), "test");
  std::vector<unsigned> result;
  for (unsigned w = 0; w < plan.steps(thread); ++w) {
    result.push_back(service_place(plan, thread, stage, w, kSteps));
  }
  return result;
}

using Places = std::vector<unsigned>;

TEST(ServiceOrder, IsThatOfTheStepsWhereEachHasALevelOfItsOwn) {
  for (const unsigned thread : {0u, 1u, 2u}) {
    EXPECT_EQ(places("bml", "bcube:3,3", thread), (Places{0, 1, 2}));
  }
  EXPECT_EQ(places("hips:ring", "torus:3,2", 3), (Places{0, 1}));
  EXPECT_EQ(places("halving_doubling", "bcube:2,3", 0), (Places{0, 1, 2}));
}

TEST(ServiceOrder, LetsTheStepsThatHalveALevelTakeTurns) {
  EXPECT_EQ(places("blueconnect", "bcube:4x4", 0), (Places{0, 0, 2, 2}));
  EXPECT_EQ(places("blueconnect", "bcube:4x3x8", 0), (Places{0, 0, 0, 3, 4, 4}));
  EXPECT_EQ(places("halving_doubling", "bcube:4,2", 0), (Places{0, 0, 2, 2}));
  EXPECT_EQ(places("halving_doubling", "star:8", 0), (Places{0, 0, 0}));
}

// Which links they share cannot be told.
TEST(ServiceOrder, KeepsTheOrderOfStepsThatSpanLevels) {
  EXPECT_EQ(places("blueconnect:3x4,ring", "bcube:3x2x2", 0), (Places{0, 1}));
  EXPECT_EQ(places("blueconnect:6x6,ring", "bcube:4x9", 0), (Places{0, 1}));
}

TEST(ServiceOrder, PutsResultsBehindAllSteps) {
  EXPECT_EQ(places("blueconnect", "bcube:4x4", 0, Stage::broadcast), Places(4, kSteps));
  EXPECT_EQ(places("bml", "bcube:3,2", 1, Stage::broadcast), Places(2, kSteps));
  EXPECT_EQ(places("two-level", "bcube:4,2", 0, Stage::broadcast), Places(3, kSteps));
  EXPECT_EQ(places("blueconnect", "tree:4x4", 0, Stage::broadcast), Places(4, kSteps));
}

TEST(ServiceOrder, LetsAllStepsOfATreeTakeTurns) {
  EXPECT_EQ(places("blueconnect", "tree:4x4", 0), (Places{0, 0, 0, 0}));
}

TEST(ServiceOrder, LetsResultsTakeTurnsWithStepsWhereARootHasOnePort) {
  EXPECT_EQ(places("two-level", "tree:4x4", 0), (Places{0, 0, 0}));
  EXPECT_EQ(places("two-level", "tree:4x4", 0, Stage::broadcast), (Places{0, 0, 0}));
}

}  // namespace
}  // namespace gradcube::control
