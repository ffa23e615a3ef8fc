#include "control/hub/aggregator_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/thread_schedule.h"
#include "tests/unit/control/message.h"

namespace gradcube::control::hub {
namespace {

const Topology& grid() {
  static const Topology topology = parse_topology("bcube:3,2", "test");
  return topology;
}

PlanChoice choice_of(const std::vector<ServerId>& members,
                     const std::vector<ServerId>& aggregators) {
  return aggregated(grid(), Placement::of(grid(), members, "test"), aggregators, "the hub");
}

std::string choice_refusal(const std::vector<ServerId>& members,
                           const std::vector<ServerId>& aggregators) {
  return message_of<UsageError>([&] { choice_of(members, aggregators); });
}

TEST(AggregatorPlan, HasTheAggregatorAsTheRootOfAllOthers) {
  for (const ServerId aggregator : {0U, 4U, 8U}) {
    std::vector<ServerId> members;
    for (ServerId server = 0; server < 9; ++server) {
      if (server != aggregator) members.push_back(server);
    }
    const PlanChoice choice = choice_of(members, {aggregator});
    const Plan& plan = choice.plan(0);
    EXPECT_EQ(choice.plans(), 1U);
    EXPECT_EQ(plan.ranks(), 9U);
    for (Rank rank = 0; rank < 9; ++rank) {
      const ThreadSchedule schedule(plan, rank, 0);
      ASSERT_EQ(schedule.steps(), 1U);
      EXPECT_EQ(schedule.step(0).sums, plan.placement().server(rank) == aggregator);
    }
  }
}

TEST(AggregatorPlan, IsForAnyServersThatARelayReaches) {
  const PlanChoice choice = choice_of({0, 5}, {7});
  EXPECT_EQ(choice.placement().ranks(), 3U);
  EXPECT_EQ(choice.placement().rank(7), 2U);
}

TEST(AggregatorPlan, RefusesAServerThatIsNotThereOrHasTrainers) {
  EXPECT_EQ(choice_refusal({0, 1}, {7, 9}),
            "the hub: the aggregator: there is no server 9 in bcube:3,2");
  EXPECT_EQ(choice_refusal({0, 1}, {7, 1}),
            "the hub: the aggregator, server [0,1], has trainers of the job: expected a server "
            "that has none; with one that has, take the algorithm ps");
  EXPECT_EQ(choice_refusal({0, 1}, {7, 7}),
            "the hub: server [2,1] is named twice; expected each server once");
}

std::string refusal_on(const char* spec, const std::vector<ServerId>& members,
                       const std::vector<ServerId>& aggregators, const char* absent = "") {
  const Topology topology = parse_absent(parse_topology(spec, "test"), absent, "test");
  return message_of<UsageError>([&] {
    aggregated(topology, Placement::of(topology, members, "test"), aggregators, "the hub");
  });
}

// Whoever never talks to another may be as far from it as there is.
TEST(AggregatorPlan, RefusesAnAggregatorThatIsTooFarFromATrainer) {
  EXPECT_EQ(refusal_on("torus:18,1", {0, 5}, {9}),
            "the hub: algorithm ps on topology torus:18,1: [0] sends to [9], 9 hops away, and a "
            "frame takes 8 at most");
  EXPECT_NE(refusal_on("torus:18,1", {0, 5}, {4, 9}).find("[0] sends to [9], 9 hops"),
            std::string::npos);
  EXPECT_EQ(refusal_on("torus:18,1", {0, 9}, {4, 5}), "") << "trainers at two ends";
  EXPECT_EQ(refusal_on("torus:18,1", {5}, {0, 9}), "") << "aggregators at two ends";
  EXPECT_NE(refusal_on("torus:12,1", {0}, {2}, "1").find("the hub: algorithm ps on topology"),
            std::string::npos);
  EXPECT_EQ(refusal_on("torus:12,1", {0, 11}, {5}, "1"), "");
}

// Of the pattern root every other server sends to the root alone.
TEST(AggregatorPlan, LetsAPlanOfPsRunWhereOnlyTheServersAreFarFromEachOther) {
  const Topology ring = parse_topology("torus:18,1", "test");
  const Placement members = Placement::of(ring, std::vector<ServerId>{0, 4, 9}, "test");
  EXPECT_TRUE(fitting_plan("ps:4", ring, members).has_value());
  EXPECT_FALSE(fitting_plan("ps:0", ring, members).has_value());
  EXPECT_FALSE(fitting_plan("mesh", ring, members).has_value());
}

// Its trainer learns how many ports there are.
TEST(AggregatorPlan, RefusesAggregatorsThatHaveMorePortsThanAPlanHasThreads) {
  const Topology star =
      parse_topology("star:7", "test").with_own_ports({{5, 10, 1'000}, {6, 10, 1'000}});
  const auto refusal = [&](const std::vector<ServerId>& aggregators) {
    return message_of<UsageError>([&] {
      aggregated(star, Placement::of(star, std::vector<ServerId>{0, 1}, "test"), aggregators,
                 "the hub");
    });
  };
  EXPECT_EQ(refusal({5, 6}), "");
  EXPECT_EQ(refusal({4, 5, 6}),
            "the hub: the plan has a thread for each aggregator, on a star for each of its ports: "
            "expected at most 20 in all, and here are 21");
}

// Each is a root of its own thread, and has no part in the others'.
TEST(AggregatorPlan, LetsSeveralAggregatorsShareTheChunks) {
  const PlanChoice choice = choice_of({0, 1, 4}, {3, 8});
  const Plan& plan = choice.plan(0);
  ASSERT_EQ(plan.threads(), 2U);
  const auto at = [&](ServerId server) { return plan.placement().rank(server).value(); };
  for (unsigned thread = 0; thread < 2; ++thread) {
    const ServerId own = thread == 0 ? 3 : 8;
    const ThreadSchedule root(plan, at(own), thread);
    EXPECT_TRUE(root.step(0).sums);
    const Offsets& sources = root.step(0).sources_in(Stage::aggregation);
    std::vector<ServerId> senders;
    for (unsigned r = sources.first; r < sources.end; ++r) {
      senders.push_back(plan.placement().server(root.peer(0, r)));
    }
    EXPECT_EQ(senders, (std::vector<ServerId>{0, 1, 4}));
    const ThreadSchedule other(plan, at(own == 3 ? 8 : 3), thread);
    EXPECT_EQ(other.step(0).peers, 0U);
    EXPECT_FALSE(other.step(0).sums);
    EXPECT_TRUE(plan.exchanges(at(own == 3 ? 8 : 3), thread, Stage::aggregation, 0).empty());
    const ThreadSchedule worker(plan, at(4), thread);
    ASSERT_EQ(worker.step(0).peers, 1U);
    EXPECT_EQ(worker.peer(0, worker.step(0).offset_of_peer(0)), at(own));
    EXPECT_EQ(plan.exchanges(at(own), thread, Stage::aggregation, 0).size(), 3U);
  }
}

}  // namespace
}  // namespace gradcube::control::hub
