#include "control/plan/algorithms/cut_threads.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/verify.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

Plan plan_on(const std::string& algorithm, const std::string& topology, unsigned lcores) {
  return make_plan(algorithm, parse_topology(topology, "test").with_lcores(lcores), "test");
}

// The digits of all ranks in the steps of a byte's thread.
std::vector<unsigned> way_of(const Plan& plan, std::uint64_t byte, std::uint64_t bytes) {
  unsigned thread = 0;
  while (plan.thread_range(thread, bytes).end <= byte) ++thread;
  std::vector<unsigned> digits;
  for (unsigned step = 0; step < plan.steps(thread); ++step) {
    digits.push_back(plan.radix(thread, step));
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      digits.push_back(plan.digit(rank, thread, step));
    }
  }
  return digits;
}

TEST(CutThreads, GiveEachLcoreAThread) {
  EXPECT_EQ(plan_on("bml", "star:4", 1).threads(), 1u);
  EXPECT_EQ(plan_on("bml", "star:4", 2).threads(), 2u);
  EXPECT_EQ(plan_on("bml", "star:4", 5).threads(), 5u);
  EXPECT_EQ(plan_on("bml", "bcube:3,2", 2).threads(), 2u);
  EXPECT_EQ(plan_on("bml", "bcube:3,2", 3).threads(), 6u) << "three lcores have two each";
  EXPECT_EQ(plan_on("bml", "bcube:2,3", 4).threads(), 12u);
  EXPECT_EQ(plan_on("bml", "bcube:2,3", 7).threads(), 9u) << "21 are too many";
  EXPECT_EQ(plan_on("bml", "bcube:3,2", 1).threads(), 2u);
  EXPECT_EQ(plan_on("hips:ring", "torus:3,2", 8).threads(), 8u);
}

TEST(CutThreads, AreNoMoreThanFramesHaveRoomFor) {
  EXPECT_EQ(plan_on("bml", "star:4", 64).threads(), kMostCutThreads);
  EXPECT_EQ(plan_on("bml", "bcube:2,3", 64).threads(), 18u);
  const Topology topology = parse_topology("bcube:3,2", "test").with_lcores(64);
  const PlanChoice choice =
      make_choice("auto:300us,1us", topology, Placement::all(topology), "test");
  EXPECT_LE(choice.threads(), PlanChoice::kMostChosen * kMostCutThreads + 1);
}

TEST(CutThreads, LeaveAPlanThatDoublesAlone) {
  EXPECT_EQ(plan_on("recursive_doubling", "bcube:2,2", 8).threads(), 1u);
}

// All that a plan has to do, of every algorithm: the proof goes over each piece.
TEST(CutThreads, DoAllThatThePlanDid) {
  for (const char* spec : {"star:4", "bcube:2,2", "bcube:3x2", "torus:3,2", "tree:2x2"}) {
    for (const unsigned lcores : {2U, 3U, 5U}) {
      const Topology topology = parse_topology(spec, "test").with_lcores(lcores);
      for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
        SCOPED_TRACE(plan.algorithm() + " on " + spec);
        EXPECT_GE(plan.threads(), plan.doubles() ? 1 : lcores);
        EXPECT_NO_THROW(verify(plan));
      }
    }
  }
}

// So the bits of meshes do not depend on how many lcores there are.
TEST(CutThreads, TakeEachByteThroughTheStepsThatItWentThroughBefore) {
  for (const char* spec : {"bcube:3,2", "bcube:4x3x2", "torus:3,2"}) {
    const Topology topology = parse_topology(spec, "test");
    for (const Plan& whole : fitting_plans(topology, Placement::all(topology))) {
      const Plan cut = plan_on(whole.algorithm(), spec, 7);
      SCOPED_TRACE(whole.algorithm() + " on " + spec);
      for (const std::uint64_t bytes : {1U, 63U, 64U, 1000U, 4096U, 65'537U}) {
        for (std::uint64_t byte = 0; byte < bytes; byte += 1 + bytes / 97) {
          EXPECT_EQ(way_of(cut, byte, bytes), way_of(whole, byte, bytes));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
