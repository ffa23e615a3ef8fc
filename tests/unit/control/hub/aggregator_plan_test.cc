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

PlanChoice choice_of(const std::vector<ServerId>& members, ServerId aggregator) {
  return aggregated(grid(), Placement::of(grid(), members, "test"), aggregator, "the hub");
}

std::string choice_refusal(const std::vector<ServerId>& members, ServerId aggregator) {
  return message_of<UsageError>([&] { choice_of(members, aggregator); });
}

TEST(AggregatorPlan, HasTheAggregatorAsTheRootOfAllOthers) {
  for (const ServerId aggregator : {0U, 4U, 8U}) {
    std::vector<ServerId> members;
    for (ServerId server = 0; server < 9; ++server) {
      if (server != aggregator) members.push_back(server);
    }
    const PlanChoice choice = choice_of(members, aggregator);
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
  const PlanChoice choice = choice_of({0, 5}, 7);
  EXPECT_EQ(choice.placement().ranks(), 3U);
  EXPECT_EQ(choice.placement().rank(7), 2U);
}

TEST(AggregatorPlan, RefusesAServerThatIsNotThereOrHasTrainers) {
  EXPECT_EQ(choice_refusal({0, 1}, 9),
            "the hub: the aggregator: there is no server 9 in bcube:3,2");
  EXPECT_EQ(choice_refusal({0, 1}, 1),
            "the hub: the aggregator, server [0,1], has trainers of the job: expected a server "
            "that has none; with one that has, take the algorithm ps");
}

}  // namespace
}  // namespace gradcube::control::hub
