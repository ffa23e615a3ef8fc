#include "control/hub/aggregator_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
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
