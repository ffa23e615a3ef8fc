#include "control/plan/assignment.h"

#include <gtest/gtest.h>
#include <map>

#include "control/base/errors.h"
#include "tests/unit/control/plans.h"

namespace gradcube::control {
namespace {

std::vector<Lcore> lcores(std::vector<int> nodes) {
  std::vector<Lcore> result;
  for (unsigned i = 0; i < nodes.size(); ++i) result.push_back({i + 10, nodes[i]});
  return result;
}

TEST(Assignment, SpreadsTheThreadsOverFewLcoresAlikeOnAllServers) {
  const Plan plan = plan_of("bml", "bcube:2,3");
  const Assignment assignment = Assignment::all_servers(plan, lcores({0, 0}));
  for (ServerId server = 0; server < plan.servers(); ++server) {
    EXPECT_EQ(assignment.lcore(server, 0), 10u);
    EXPECT_EQ(assignment.lcore(server, 1), 11u);
    EXPECT_EQ(assignment.lcore(server, 2), 10u);
    const auto engines = assignment.engines(server);
    ASSERT_EQ(engines.size(), 2u);
    EXPECT_EQ(engines[0].threads, (std::vector<unsigned>{0, 2}));
    EXPECT_EQ(engines[1].threads, (std::vector<unsigned>{1}));
    EXPECT_EQ(engines[1].queue, 1u);
  }
}

TEST(Assignment, SpreadsTheServersOverGroupsOfManyLcores) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const Assignment assignment = Assignment::all_servers(plan, lcores({0, 0, 0, 0, 0}));
  std::map<unsigned, unsigned> load;
  for (ServerId server = 0; server < plan.servers(); ++server) {
    for (unsigned t = 0; t < 2; ++t) {
      EXPECT_EQ(assignment.lcore(server, t), 10 + server % 2 * 2 + t);
      ++load[assignment.lcore(server, t)];
    }
  }
  EXPECT_EQ(load, (std::map<unsigned, unsigned>{{10, 5}, {11, 5}, {12, 4}, {13, 4}}));
}

TEST(Assignment, RunsEverythingOnTheOnlyLcore) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const Assignment assignment = Assignment::all_servers(plan, lcores({0}));
  EXPECT_EQ(assignment.engines(8).size(), 1u);
  EXPECT_EQ(assignment.engines(8)[0].threads, (std::vector<unsigned>{0, 1}));
}

TEST(Assignment, NeedsAnLcore) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  EXPECT_THROW(Assignment::all_servers(plan, {}), SetupError);
}

TEST(Assignment, GivesEachEngineOfAServerItsOwnQueueFromZero) {
  for (const char* spec : {"star:4", "bcube:2,3", "bcube:2,5"}) {
    const Plan plan = plan_of("bml", spec);
    for (unsigned count = 1; count < 12; ++count) {
      const Assignment assignment =
          Assignment::all_servers(plan, lcores(std::vector<int>(count, 0)));
      for (ServerId server = 0; server < plan.servers(); ++server) {
        const auto engines = assignment.engines(server);
        unsigned threads = 0;
        for (unsigned e = 0; e < engines.size(); ++e) {
          EXPECT_EQ(engines[e].queue, e);
          threads += static_cast<unsigned>(engines[e].threads.size());
          for (const unsigned t : engines[e].threads) {
            EXPECT_EQ(assignment.lcore(server, t), engines[e].lcore);
          }
        }
        EXPECT_EQ(threads, plan.threads());
        EXPECT_EQ(engines.size(), std::min(count, plan.threads()));
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
