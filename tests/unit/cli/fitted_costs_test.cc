#include "cli/model/fitted_costs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"
#include "control/settings/link_rates.h"

namespace gradcube::cli {
namespace {

using control::MessageCosts;

control::Topology topology_of(const char* spec) { return control::parse_topology(spec, "test"); }

// What measurements would give if messages cost just this, and each all-reduce 50 us besides.
MessageCosts found_again(const char* spec, const MessageCosts& costs,
                         const std::vector<const char*>& algorithms) {
  const auto topology = topology_of(spec);
  auto parameters = control::cost_parameters(topology, costs);
  parameters.frame_bytes = 0;
  std::vector<LevelLine> lines;
  for (const auto& level : parameters.levels) lines.push_back({{3 * level.latency, 1e-9}, 0});
  std::vector<TimedPlan> plans;
  for (const char* algorithm : algorithms) {
    const control::PlanCost cost(control::make_plan(algorithm, topology, "test"));
    const auto time = cost.time(control::CollectiveKind::all_reduce, 0, parameters);
    plans.push_back({cost, 50e-6 + time.seconds()});
  }
  return message_costs(lines, costs.servers_per_core, plans);
}

TEST(MessageCosts, AreFoundFromWhatTheyMakeOfMeasurements) {
  const std::vector<const char*> plans = {"bml", "hips:ring", "blueconnect", "blueconnect:ring"};
  const MessageCosts shared{900, {20'000, 65'500}, 8};
  EXPECT_EQ(found_again("bcube:4,2", shared, plans), shared);
  const MessageCosts alone{3'100, {40'700, 40'700}};
  EXPECT_EQ(found_again("bcube:4,2", alone, plans), alone);
  const MessageCosts by_level{2'000, {20'000, 65'500, 7'000}};
  EXPECT_EQ(found_again("bcube:4x2x4", by_level, plans), by_level);
}

TEST(MessageCosts, AreAllLatencyWherePlansDoNotTell) {
  const auto topology = topology_of("star:2");
  const std::vector<LevelLine> lines = {{{80e-6, 1e-9}, 0}};
  const TimedPlan bml{control::PlanCost(control::make_plan("bml", topology, "test")), 92e-6};
  EXPECT_EQ(message_costs(lines, 1, std::vector{bml}), (MessageCosts{0, {46'000}}));
}

TEST(MessageCosts, AreNeverNegative) {
  const std::vector<LevelLine> lines = {{{-1e-5, 1e-9}, 0}, {{5e-5, 1e-9}, 0}};
  const auto topology = topology_of("bcube:3,2");
  for (const double ring : {1e-9, 1e-4, 1.0}) {
    const std::vector<TimedPlan> plans = {
        {control::PlanCost(control::make_plan("bml", topology, "test")), 1e-4},
        {control::PlanCost(control::make_plan("ring", topology, "test")), ring}};
    const MessageCosts costs = message_costs(lines, 5, plans);
    EXPECT_GE(costs.overhead, 0);
    EXPECT_GE(costs.latency[0], 0);
    EXPECT_GE(costs.latency[1], 0);
  }
}

// Of links with 100 Mbit/s, whose level 0 seems to have another rate.
std::vector<std::string> doubts_with(double bps, const MessageCosts& costs, double resent = 0,
                                     double misfit = 0.1) {
  const std::vector<LevelLine> lines = {{{1e-5, 8 / bps}, misfit}, {{1e-5, 8 / 97e6}, 0.1}};
  return doubts_of(lines, control::LinkRates(100'000'000).on(topology_of("bcube:2,2")), costs,
                   resent, /*plans_show_overhead=*/true);
}

TEST(Doubts, AreNoneOfAFitThatAgreesWithTheRates) {
  const MessageCosts costs{1'000, {1'000, 1'000}};
  EXPECT_EQ(doubts_with(97e6, costs, 0.01), std::vector<std::string>());
  const std::vector<LevelLine> fast = {{{1e-5, 1e-12}, 0.1}, {{1e-5, 1e-12}, 0.1}};
  EXPECT_TRUE(doubts_of(fast, topology_of("bcube:2,2"), costs, 0, true).empty())
      << "there is no rate";
}

TEST(Doubts, SayWhatSpeaksAgainstAFit) {
  using testing::ElementsAre;
  using testing::HasSubstr;
  const MessageCosts costs{1'000, {1'000, 1'000}};
  EXPECT_THAT(doubts_with(61e6, costs),
              ElementsAre("bytes on level 0 took the time of 61 Mbit/s, and its rate is 100 "
                          "Mbit/s"));
  EXPECT_THAT(doubts_with(130e6, costs), ElementsAre(HasSubstr("130 Mbit/s")));
  EXPECT_THAT(doubts_with(-1, costs), ElementsAre("bytes on level 0 took no time"));
  EXPECT_THAT(doubts_with(97e6, {1'000, {1'000, 0}}),
              ElementsAre("no latency was found on level 1"));
  EXPECT_THAT(doubts_with(97e6, costs, 0.105),
              ElementsAre(HasSubstr("10 % of the segments were sent again")));
  EXPECT_THAT(doubts_with(97e6, costs, 0, 0.73),
              ElementsAre("half of the times on level 0 lie 73 % or more off a line"));
}

TEST(Doubts, AriseWhereBytesTakeNoTimeThoughNoRateIsConfigured) {
  const std::vector<LevelLine> lines = {{{1e-5, 0}, 0}, {{1e-5, 1e-12}, 0}};
  EXPECT_THAT(doubts_of(lines, topology_of("bcube:2,2"), {1'000, {1'000, 1'000}}, 0, true),
              testing::ElementsAre("bytes on level 0 took no time"));
}

TEST(Doubts, AriseWhereACoreThatIsSharedTakesNoTimeThoughThePlansWouldShowIt) {
  const std::vector<LevelLine> lines = {{{1e-5, 1e-12}, 0}, {{1e-5, 1e-12}, 0}};
  const auto doubts = [&](const MessageCosts& costs, bool shown) {
    return doubts_of(lines, topology_of("bcube:2,2"), costs, 0, shown);
  };
  EXPECT_THAT(doubts({0, {1'000, 1'000}, 2}, true),
              testing::ElementsAre("a core that 2 servers share took no time for a message"));
  EXPECT_THAT(doubts({0, {1'000, 1'000}, 2}, false), testing::IsEmpty());
  EXPECT_THAT(doubts({0, {1'000, 1'000}, 1}, true), testing::IsEmpty());
  EXPECT_THAT(doubts({100, {1'000, 1'000}, 2}, true), testing::IsEmpty());
}

TEST(Doubts, KnowWhichPlansTellCostsApart) {
  const auto tell = [](const char* spec, const std::vector<const char*>& algorithms) {
    std::vector<TimedPlan> plans;
    for (const char* algorithm : algorithms) {
      const auto plan = control::make_plan(algorithm, topology_of(spec), "test");
      plans.push_back({control::PlanCost(plan), 1e-4});
    }
    return tell_costs_apart(topology_of(spec), plans);
  };
  EXPECT_TRUE(tell("bcube:4,2", {"bml", "hips:ring", "blueconnect", "blueconnect:ring"}));
  EXPECT_FALSE(tell("bcube:4,2", {"bml", "hips:ring"})) << "two are always on a line";
  EXPECT_FALSE(tell("bcube:4,2", {"bml", "bml", "hips:ring"}));
  EXPECT_FALSE(tell("star:2", {"bml"}));
}

TEST(FittedName, HasTheGreatestLatencyWhereThatOfEachLevelIsTooLong) {
  EXPECT_EQ(fitted_name({.overhead = 3'100, .latency = {41'000, 43'500}, .servers_per_core = 5}),
            "auto:3.1us,41us,43.5us/5");
  EXPECT_EQ(fitted_name({.overhead = 3'100, .latency = std::vector<std::int64_t>(7, 40'100)}),
            "auto:3.1us,40.1us");
}

}  // namespace
}  // namespace gradcube::cli
