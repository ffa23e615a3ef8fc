#include "control/plan/plan_choice.h"

#include <gtest/gtest.h>
#include <string>

#include "control/base/errors.h"
#include "control/plan/auto_plans.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

Topology topology_of(const std::string& spec, std::uint64_t rate) {
  const Topology topology = parse_topology(spec, "test");
  return topology.with_rates(std::vector<std::uint64_t>(topology.levels(), rate));
}

PlanChoice choice_on(const Topology& topology, const std::string& algorithm = "auto") {
  return make_choice(algorithm, topology, Placement::all(topology), "algorithm");
}

double seconds(const Plan& plan, CollectiveKind kind, std::uint64_t bytes,
               const MessageCosts& costs = {}) {
  return PlanCost(plan)
      .time(kind, static_cast<double>(bytes), cost_parameters(plan.topology(), costs))
      .seconds();
}

TEST(PlanChoice, OfAnAlgorithmIsItsPlan) {
  const PlanChoice choice = choice_on(topology_of("bcube:3,2", 0), "hips:ring");
  EXPECT_EQ(choice.plans(), 1u);
  EXPECT_EQ(choice.threads(), 2u);
  EXPECT_EQ(choice.plan_of(CollectiveKind::all_reduce, 1 << 20).algorithm(), "hips:ring");
}

// But for the size of a class, and the 3 % by which another plan has to be better than the first.
// On bcube:2,3 more plans are the fastest for some size than a lane keeps: there, of those it
// keeps.
TEST(PlanChoice, TakesTheLeastTimeOfAllCandidates) {
  for (const char* spec : {"star:2", "star:8", "bcube:4,2", "bcube:2,3", "bcube:3x2"}) {
    for (const std::uint64_t rate : {100'000'000ULL, 10'000'000'000ULL}) {
      const Topology topology = topology_of(spec, rate);
      const auto candidates = candidate_plans(topology, Placement::all(topology), "test");
      const PlanChoice choice = choice_on(topology);
      for (std::uint64_t bytes = 1; bytes <= 1 << 30; bytes *= 2) {
        for (const CollectiveKind kind : kCollectiveKinds) {
          const double taken = seconds(choice.plan_of(kind, bytes), kind, bytes);
          for (unsigned plan = 0; plan < choice.plans(); ++plan) {
            if (!can_run(choice.plan(plan), kind, bytes)) continue;
            EXPECT_LE(taken, seconds(choice.plan(plan), kind, bytes) / 0.96)
                << spec << ", " << bytes << " bytes: " << choice.plan(plan).algorithm();
          }
          if (topology.levels() == 3) continue;
          for (const auto& candidate : candidates) {
            if (!can_run(*candidate, kind, bytes)) continue;
            EXPECT_LE(taken, seconds(*candidate, kind, bytes) / 0.94)
                << spec << ", " << bytes << " bytes: " << candidate->algorithm();
          }
        }
      }
    }
  }
}

TEST(PlanChoice, TakesFewMessagesForSmallBuffersAndAllLinksForLargeOnes) {
  const PlanChoice choice = choice_on(topology_of("bcube:4,2", 10'000'000'000));
  EXPECT_EQ(choice.plan_of(CollectiveKind::barrier, 0).algorithm(), "recursive_doubling");
  EXPECT_EQ(choice.plan_of(CollectiveKind::reduce, 0).algorithm(), "hips:root");
  EXPECT_EQ(choice.plan_of(CollectiveKind::all_reduce, 100'000'000).algorithm(), "bml");
  EXPECT_EQ(choice.plan_of(CollectiveKind::all_reduce, UINT64_MAX).algorithm(), "bml");
  EXPECT_GT(choice.plans(), 1u);
  EXPECT_LE(choice.plans(), PlanChoice::kMostChosen + 1) << "with recursive_doubling";
}

TEST(PlanChoice, DependsOnTheCostsInItsName) {
  const Topology topology = topology_of("bcube:4,2", 1'000'000'000);
  const auto taken = [&](const char* algorithm) {
    return choice_on(topology, algorithm).plan_of(CollectiveKind::all_reduce, 4096).algorithm();
  };
  EXPECT_EQ(taken("auto:0,0"), "bml");
  EXPECT_NE(taken("auto:100us,1us"), "bml");
}

// With cores of their own the plan of more messages that wait less is faster.
TEST(PlanChoice, TakesFewerMessagesWhereServersShareCores) {
  const auto taken = [&](const char* spec, const char* algorithm, std::uint64_t bytes) {
    const PlanChoice choice = choice_on(topology_of(spec, 200'000'000), algorithm);
    return choice.plan_of(CollectiveKind::all_reduce, bytes).algorithm();
  };
  EXPECT_EQ(taken("bcube:4,2", "auto:1us,40us", 1024), "bml");
  EXPECT_NE(taken("bcube:4,2", "auto:1us,40us/8", 1024), "bml");
  EXPECT_EQ(taken("torus:4,2", "auto:1us,40us", 1024), "hips:ring");
  EXPECT_EQ(taken("torus:4,2", "auto:1us,40us/8", 1024), "blueconnect");
  // What was measured where 16 servers shared two cores.
  EXPECT_EQ(taken("torus:4,2", "auto:500ns,29us/8", 16'000), "hips:mesh");
  EXPECT_EQ(taken("torus:4,2", "auto:500ns,29us/8", 1'000'000), "hips:ring");
  EXPECT_EQ(taken("bcube:4,2", "auto:500ns,29us/8", 16'000), "bml");
}

TEST(PlanChoice, NumbersTheThreadsOfAllItsPlans) {
  const PlanChoice choice = choice_on(topology_of("bcube:4,2", 10'000'000'000));
  unsigned first = 0;
  for (unsigned plan = 0; plan < choice.plans(); ++plan) {
    EXPECT_EQ(choice.first_thread(plan), first);
    for (unsigned t = 0; t < choice.plan(plan).threads(); ++t) {
      EXPECT_EQ(choice.plan_of_thread(first + t), plan);
    }
    first += choice.plan(plan).threads();
  }
  EXPECT_EQ(choice.threads(), first);
}

TEST(PlanChoice, IsMadeOfPlansForTheSameRanks) {
  const Topology topology = topology_of("bcube:4,2", 10'000'000'000);
  const std::vector<ServerId> members = {1, 2, 3, 5, 6, 7};
  const PlanChoice choice =
      make_choice("auto", topology, Placement::of(topology, members, "test"), "test");
  for (unsigned plan = 0; plan < choice.plans(); ++plan) {
    EXPECT_EQ(choice.plan(plan).placement(), choice.placement());
  }
  EXPECT_EQ(choice.placement().ranks(), 6u);
}

TEST(AutoCosts, AreReadFromTheNameThatTheyMake) {
  const Topology topology = topology_of("bcube:3,3", 0);
  for (const MessageCosts& costs :
       {MessageCosts{}, MessageCosts{1500, {20'000, 40'100, 7}}, MessageCosts{0, {0}},
        MessageCosts{1'000, {40'000}, 8}, MessageCosts{1'000, {1, 2, 3}, 65'536}}) {
    EXPECT_EQ(auto_costs(auto_name(costs), topology, "test"), costs) << auto_name(costs);
  }
  EXPECT_EQ(auto_costs("auto", topology, "test"), MessageCosts{});
  EXPECT_EQ(auto_costs("auto:1us,2us/1", topology, "test"), (MessageCosts{1'000, {2'000}}));
  EXPECT_EQ(auto_costs("automatic", topology, "test"), std::nullopt);
  EXPECT_EQ(auto_costs("bml", topology, "test"), std::nullopt);
}

TEST(AutoCosts, SayWhatIsExpected) {
  const Topology topology = topology_of("bcube:3,2", 0);
  const auto refusal = [&](const char* algorithm) {
    return message_of<UsageError>([&] { auto_costs(algorithm, topology, "--algorithm"); });
  };
  EXPECT_EQ(refusal("auto:3us"),
            "--algorithm \"auto:3us\": it lists 1 cost; expected what a core takes for a message, "
            "then the latency of all levels or of each of the 2, and where servers share cores how "
            "many: auto:1us,40us/8");
  EXPECT_EQ(refusal("auto:1us,2us/0"),
            "--algorithm \"auto:1us,2us/0\": servers on a core: \"0\": expected a whole number in "
            "1..65536");
  for (const char* wrong : {"auto:1us,2us/", "auto:1us,2us/x", "auto:1us,2us/-1", "auto:1us/2",
                            "auto:1us,2us/65537", "auto:1us,2us/2/3"}) {
    EXPECT_NE(refusal(wrong), "") << wrong;
  }
  EXPECT_NE(refusal("auto:"), "");
  EXPECT_NE(refusal("auto:3us,4us,5us,6us"), "");
  EXPECT_NE(refusal("auto:3us,4"), "");
  EXPECT_NE(refusal("auto:3us,-4us"), "");
}

TEST(AutoCosts, OfAutoAloneAreCompletedByHowManyServersShareACore) {
  EXPECT_EQ(completed_auto("auto", 1), "auto");
  MessageCosts costs;
  costs.servers_per_core = 8;
  EXPECT_EQ(completed_auto("auto", 8), auto_name(costs));
  EXPECT_EQ(completed_auto("auto:1us,2us", 8), "auto:1us,2us");
  EXPECT_EQ(completed_auto("bml", 8), "bml");
}

}  // namespace
}  // namespace gradcube::control
