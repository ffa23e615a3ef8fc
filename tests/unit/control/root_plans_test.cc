// The plans with steps of the pattern root: ps, hips:root and two-level.
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"
#include "control/plan/thread_schedule.h"
#include "control/plan/verify.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// "[1] sends <0,0> receives -" of one rank's exchanges in a step of thread 0.
std::string exchanges_text(const Plan& plan, Rank rank, Stage stage, unsigned step) {
  std::string text;
  for (const Exchange& e : plan.exchanges(rank, 0, stage, step)) {
    text += plan.space().text(plan.placement().server(e.peer)) + " sends " + e.send.text() +
            " receives " + e.receive.text() + "\n";
  }
  return text;
}

TEST(RootPlans, LetAllSendToTheParameterServerAndGetTheSumBack) {
  const Plan plan = plan_of("ps:1", "star:3");
  EXPECT_EQ(plan.pieces(), 1u);
  EXPECT_EQ(exchanges_text(plan, 0, Stage::aggregation, 0), "[1] sends <0,1> receives -\n");
  EXPECT_EQ(exchanges_text(plan, 0, Stage::broadcast, 0), "[1] sends - receives <0,1>\n");
  EXPECT_EQ(exchanges_text(plan, 1, Stage::aggregation, 0),
            "[0] sends - receives <0,1>\n[2] sends - receives <0,1>\n");
  EXPECT_EQ(exchanges_text(plan, 1, Stage::broadcast, 0),
            "[0] sends <0,1> receives -\n[2] sends <0,1> receives -\n");
  EXPECT_EQ(plan.owned(1, 0).text(), "<0,1>");
  EXPECT_TRUE(plan.owned(0, 0).none);
}

TEST(RootPlans, TakeTheFirstServerOfTheJobForTheParameterServer) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Placement row = Placement::of(topology, std::vector<ServerId>{3, 4, 5}, "test");
  const Plan plan = make_plan("ps", topology, row, "test");
  EXPECT_FALSE(plan.owned(0, 0).none);
  EXPECT_EQ(plan.link_use(), LinkUse::exclusive);
  EXPECT_EQ(plan_of("ps", "bcube:3,2").link_use(), LinkUse::shared);
}

// All links into the root and out of it, in both stages: N-1 gradients.
TEST(RootPlans, LoadTheLinksOfTheParameterServerAndNoOther) {
  for (const char* name : {"ps", "ps:3", "hips:root"}) {
    const VerifyReport report = verify(plan_of(name, "star:7"));
    EXPECT_EQ(report.link_pieces, (std::vector<std::uint64_t>{6}));
    EXPECT_EQ(report.transfers, 12u);
  }
}

// Each root has a part of the buffer, and so its links carry m times less than those of one.
TEST(RootPlans, ShareTheBufferAmongTheRootsThatANameLists) {
  const Plan plan = plan_of("ps:5 2 6", "star:7");
  ASSERT_EQ(plan.threads(), 3u);
  EXPECT_EQ(plan.owned(5, 0).text(), "<0,5>");
  EXPECT_EQ(plan.owned(2, 1).text(), "<1,2>");
  EXPECT_EQ(plan.owned(6, 2).text(), "<2,6>");
  EXPECT_TRUE(plan.owned(2, 0).none);
  const VerifyReport report = verify(plan);
  EXPECT_EQ(report.pieces, 3u);
  // Into a root 6 contributions to its piece, and in the other stage the results of the others.
  EXPECT_EQ(report.link_pieces, (std::vector<std::uint64_t>{6 + 2}));
  EXPECT_EQ(report.transfers, 3u * 12);
  const auto one = PlanCost(plan_of("ps:5", "star:7")).share(0);
  EXPECT_DOUBLE_EQ(PlanCost(plan).share(0), one * 8 / 6 / 3);
}

TEST(RootPlans, HaveAsManyRootsInEachGroupAsANameSays) {
  const Plan plan = plan_of("hips:2xroot", "bcube:3,2");
  ASSERT_EQ(plan.threads(), 8u) << "for each process and each pair of roots";
  unsigned owned = 0;
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      if (plan.owned(rank, thread).none) continue;
      ++owned;
      EXPECT_LT(rank % 3, 2u);
      EXPECT_LT(rank / 3, 2u);
    }
  }
  EXPECT_EQ(owned, 8u);
  EXPECT_EQ(plan_of("hips:2xroot,mesh", "bcube:3,2").threads(), 4u);
  EXPECT_EQ(plan_of("hips:1xroot", "bcube:3,2").threads(), 2u);
  EXPECT_EQ(plan_of("hips:ring,2xroot", "torus:3,2").threads(), 8u) << "both ways round";
}

TEST(RootPlans, LetTheRootOfEachGroupGoOnAloneInTwoLevels) {
  const Plan plan = plan_of("two-level", "bcube:3,2");
  EXPECT_EQ(plan.pieces(), 3u);
  EXPECT_EQ(exchanges_text(plan, 4, Stage::aggregation, 0), "[1,0] sends <0,*,0> receives -\n");
  EXPECT_EQ(exchanges_text(plan, 4, Stage::aggregation, 1), "");
  EXPECT_EQ(exchanges_text(plan, 4, Stage::broadcast, 0), "");
  EXPECT_EQ(exchanges_text(plan, 4, Stage::broadcast, 1), "[1,0] sends - receives <0,*,0>\n");
  EXPECT_EQ(exchanges_text(plan, 3, Stage::aggregation, 1),
            "[2,0] sends <0,0,0> receives <0,2,0>\n[2,0] sends <0,2,0> receives <0,1,0>\n");
  EXPECT_EQ(verify(plan).link_pieces, (std::vector<std::uint64_t>{6, 4}));
}

TEST(RootPlans, TakeTheCheaperAllReduceAmongTheGroupsOfTwoLevels) {
  const Plan halved = plan_of("two-level", "bcube:4,2");
  ASSERT_EQ(halved.steps(), 3u);
  EXPECT_EQ(halved.step(0, 1), (PlanStep{2, 8}));
  EXPECT_EQ(halved.step(0, 2), (PlanStep{2, 4}));
  const Plan ring = plan_of("two-level", "bcube:3,3");
  ASSERT_EQ(ring.steps(), 2u);
  EXPECT_EQ(ring.radix(0, 1), 9u);
  for (Rank rank = 0; rank < 27; rank += 3) {
    const unsigned next = (ring.digit(rank, 0, 1) + 1) % 9;
    EXPECT_EQ(ring.route(rank, ring.peer(rank, 0, 1, next)).size(), 1u) << "a neighbour";
  }
}

TEST(RootPlans, GiveNoStreamsToARankThatHasGivenAllAway) {
  const ThreadSchedule schedule(plan_of("two-level", "bcube:3,2"), 4, 0);
  const ScheduleStep& group = schedule.step(0);
  EXPECT_FALSE(group.sums);
  ASSERT_EQ(group.peers, 1u);
  EXPECT_EQ(schedule.peer(0, group.offset_of_peer(0)), 3u);
  EXPECT_EQ(group.targets_in(Stage::aggregation).count(), 1u);
  EXPECT_EQ(group.sources_in(Stage::aggregation).count(), 0u);
  EXPECT_EQ(group.targets_in(Stage::broadcast).count(), 0u);
  EXPECT_EQ(group.sources_in(Stage::broadcast).count(), 1u);
  EXPECT_EQ(schedule.step(1).peers, 0u);
  EXPECT_FALSE(schedule.step(1).sums);
}

TEST(RootPlans, AreProvedOnEverySmallTopology) {
  for (const Topology& topology : small_topologies(81)) {
    const Placement all = Placement::all(topology);
    const std::string last = topology.space().text(topology.servers() - 1);
    const std::string first = topology.space().text(0);
    const std::string at_last = "ps:" + last.substr(1, last.size() - 2);
    for (const std::string& name :
         {std::string("ps"), at_last, at_last + " " + first.substr(1, first.size() - 2),
          std::string("hips:root"), std::string("hips:2xroot"), std::string("two-level")}) {
      if (name == "two-level" && topology.levels() == 1) continue;
      if (name == "hips:2xroot" && topology.levels() > 2) continue;  // too many threads
      SCOPED_TRACE(name + " on " + topology.spec());
      const VerifyReport report = verify(make_plan(name, topology, all, "test"));
      // Each gives all away but one, and gets all back.
      EXPECT_EQ(report.transfers % (2 * (topology.servers() - 1)), 0u);
    }
  }
}

TEST(RootPlans, SayWhatTheyCannotRun) {
  EXPECT_NE(refusal("ps:9", "star:5").find("--algorithm \"ps:9\": \"9\" is not a server's address"),
            std::string::npos);
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Placement row = Placement::of(topology, std::vector<ServerId>{3, 4, 5}, "test");
  EXPECT_EQ(message_of<UsageError>([&] { make_plan("ps:0,1", topology, row, "test"); }),
            "algorithm ps:0,1: [0,1] is none of the job's servers; expected one of them, for "
            "example ps alone, which takes the first, or the one whose ports have most");
  EXPECT_EQ(refusal("ps:1 3 1", "star:5"), "algorithm ps:1 3 1: it names [1] twice");
  EXPECT_EQ(refusal("ps:", "star:5"), "algorithm ps:: it names no server");
  EXPECT_EQ(refusal("hips:mesh,4xroot", "bcube:3x4"),
            "algorithm hips:mesh,4xroot: 4 roots in groups of 3 servers");
  EXPECT_NE(refusal("hips:4xroot", "bcube:4,2")
                .find("its roots have threads of their own, 32 of them, and a plan has at most 20; "
                      "expected one that runs on these servers: bml"),
            std::string::npos);
  EXPECT_NE(refusal("ps", "bcube:17,2").find("ps: a step has at most 256 servers"),
            std::string::npos);
  EXPECT_EQ(refusal("two-level", "star:5"),
            "algorithm two-level on 5 servers: all are under one switch; expected servers of "
            "several groups, or ps, whose one group they are");
  EXPECT_NE(refusal("two-level", "bcube:7,4").find("at most 256 groups, and here are 343;"),
            std::string::npos);
}

}  // namespace
}  // namespace gradcube::control
