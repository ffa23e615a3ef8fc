// Plans on servers that form no grid, above all those of partial topologies.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/algorithms/server_cycle.h"
#include "control/plan/auto_plans.h"
#include "control/plan/neighbour_rounds.h"
#include "control/plan/verify.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/topologies.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::control {
namespace {

Topology partial(std::string_view spec, std::string_view absent) {
  return parse_absent(parse_topology(spec, "test"), absent, "--absent");
}

std::set<std::string> names_of(const std::vector<Plan>& plans) {
  std::set<std::string> names;
  for (const Plan& plan : plans) names.insert(plan.algorithm());
  return names;
}

TEST(PartialTopology, SaysHowManyServersItHasAndWhoIsAbsent) {
  const Topology topology = partial("bcube:4,2", "3,1; [3,2] 3,3");
  EXPECT_EQ(topology.spec(), "bcube:4,2");
  EXPECT_EQ(topology.servers(), 13u);
  EXPECT_EQ(topology.absent_text(), "3,1 3,2 3,3");
  EXPECT_EQ(servers_text(topology), "13 servers, 3 absent");
  EXPECT_EQ(servers_text(topology.whole()), "16 servers");
  EXPECT_EQ(topology_json(topology).dump(),
            R"({"spec":"bcube:4,2","kind":"bcube","n":4,"k":2,"servers":13,)"
            R"("absent":[[3,1],[3,2],[3,3]]})");
  EXPECT_EQ(topology.with_rates({1, 2}).servers(), 13u);
  EXPECT_EQ(parse_absent(topology, topology.absent_text(), "test"), topology);
  EXPECT_EQ(parse_absent(topology, "", "test"), topology.whole());
  EXPECT_EQ(partial("star:4", "3").spec(), "star:4");
}

TEST(PartialTopology, RefusesWhatIsNoClusterInOnePiece) {
  const auto refusal = [](std::string_view spec, std::string_view absent) {
    return message_of<UsageError>([&] { partial(spec, absent); });
  };
  EXPECT_NE(refusal("bcube:4,2", "4,0").find("--absent \"4,0\" is not a server's address"),
            std::string::npos);
  EXPECT_EQ(refusal("bcube:2,1", "0 1"),
            "--absent: all servers would be absent (topology bcube:2,1)");
  EXPECT_EQ(refusal("bcube:2,2", "0,1 1,0"),
            "--absent: without these, no servers that are there join [0,0] and [1,1]; expected a "
            "cluster in one piece (topology bcube:2,2)");
  EXPECT_NE(refusal("bcube:7,3", "0,0,1").find("343 addresses; servers may be absent of"),
            std::string::npos);
  EXPECT_EQ(
      message_of<UsageError>([] { parse_server(partial("bcube:4,2", "3,1"), "3,1", "--from"); }),
      "--from \"3,1\" is absent: the cluster has no server at this address (topology "
      "bcube:4,2)");
}

TEST(PartialPlacement, RanksTheServersThatAreThereByTheirNumbers) {
  const Topology topology = partial("bcube:4,2", "0,1 3,3");
  const Placement all = Placement::all(topology);
  EXPECT_FALSE(all.is_grid());
  EXPECT_TRUE(all.dimensions().empty());
  ASSERT_EQ(all.ranks(), 14u);
  EXPECT_EQ(all.server(0), 0u);
  EXPECT_EQ(all.server(1), 2u);
  for (Rank rank = 0; rank < all.ranks(); ++rank) EXPECT_EQ(all.rank(all.server(rank)), rank);
  EXPECT_EQ(all.rank(1), std::nullopt);
  EXPECT_EQ(all.rank(15), std::nullopt);
  EXPECT_EQ(all.rank(16), std::nullopt);
  // A missing row leaves a grid, and with it the usual algorithms.
  const Topology rows = partial("bcube:4,2", "3,0 3,1 3,2 3,3");
  EXPECT_TRUE(Placement::all(rows).is_grid());
  EXPECT_EQ(default_algorithm(rows), "bml");
  EXPECT_EQ(message_of<UsageError>([&] {
              Placement::of(topology, std::vector<ServerId>{0, 1}, "members");
            }),
            "members: server [0,1] is absent: the cluster has none at this address");
}

TEST(PartialPlans, RunOnAnyServersOrSayWhatDoes) {
  const Topology topology = partial("bcube:4,2", "3,1 3,2 3,3");
  const Placement all = Placement::all(topology);
  EXPECT_EQ(names_of(fitting_plans(topology, all)), (std::set<std::string>{"mesh", "ps", "ring"}));
  EXPECT_EQ(message_of<UsageError>([&] { make_plan("bml", topology, "--algorithm"); }),
            "algorithm bml: these 13 servers of bcube:4,2 form no grid: [3,1] [3,2] [3,3] are "
            "missing; expected one that runs on these servers: mesh, ps, ring");
  EXPECT_EQ(message_of<UsageError>([&] { make_plan("halving_doubling", topology, "--algorithm"); }),
            "algorithm halving_doubling on 13 servers: every step halves them, down from a power "
            "of two; expected one that runs on these servers: mesh, ps, ring");
  for (const char* name : {"hips:ring", "blueconnect", "two-level"}) {
    EXPECT_NE(message_of<UsageError>([&] {
                make_plan(name, topology, "--algorithm");
              }).find("form no grid"),
              std::string::npos)
        << name;
  }
  const Topology eight = partial("bcube:3,2", "2,2");
  EXPECT_TRUE(names_of(fitting_plans(eight, Placement::all(eight))).contains("halving_doubling"));
  const Topology large = parse_topology("bcube:17,2", "test");
  std::vector<ServerId> all_but_one(17 * 17 - 1);
  std::iota(all_but_one.begin(), all_but_one.end(), ServerId{0});
  const Placement most = Placement::of(large, all_but_one, "test");
  EXPECT_THAT(
      message_of<UsageError>([&] { make_plan("bml", large, most, "--algorithm"); }),
      testing::EndsWith("; expected 256 servers or fewer, and mesh, ring or ps, which run on "
                        "any of them"));
  EXPECT_THAT(message_of<UsageError>([&] { make_plan("bml", eight, "--algorithm"); }),
              testing::EndsWith("servers: halving_doubling, mesh, ps, ring"));
  EXPECT_NE(candidate_plans(topology, all, "test").front()->algorithm(), "bml");
}

TEST(PartialPlans, AdviseOfATorusWhatRunsThere) {
  const auto refusal_of = [](const char* name, const Topology& topology) {
    return message_of<UsageError>([&] { make_plan(name, topology, "--algorithm"); });
  };
  const Topology far = partial("torus:12,1", "1");
  for (const char* name : {"ring", "mesh", "ps"}) {
    EXPECT_THAT(refusal_of(name, far),
                testing::EndsWith("over servers that are not absent; expected other servers, as no "
                                  "algorithm runs on these"))
        << name;
  }
  const Topology corner = partial("torus:10,2", "9,9");
  EXPECT_NO_THROW(make_plan("ring", corner, "--algorithm"));
  EXPECT_THAT(refusal_of("mesh", corner), testing::EndsWith("servers: ring"));
  EXPECT_THAT(refusal_of("hips:ring", corner), testing::EndsWith("servers: ring"));
  EXPECT_THAT(refusal_of("halving_doubling", corner), testing::EndsWith("servers: ring"));
  EXPECT_THAT(refusal_of("halving_doubling", parse_topology("torus:3,2", "")),
              testing::HasSubstr("servers: blueconnect, blueconnect:ring, hips:mesh"));
}

TEST(PartialPlans, HaveADefaultThatTakesTheLeastModelledTime) {
  for (const char* absent : {"3,1 3,2 3,3", "0,0", "1,2 2,1", "0,0 0,1 0,2 1,0 1,1 2,0 3,3 1,3"}) {
    const Topology topology = partial("bcube:4,2", absent);
    const Placement all = Placement::all(topology);
    const std::string name(default_algorithm(topology));
    const CostParameters costs = cost_parameters(topology, MessageCosts());
    const auto seconds = [&](const Plan& plan) {
      return PlanCost(plan).time(CollectiveKind::all_reduce, 64e6, costs).seconds();
    };
    const double of_default = seconds(make_plan(name, topology, "test"));
    for (const Plan& plan : fitting_plans(topology, all)) {
      EXPECT_LE(of_default, seconds(plan)) << plan.algorithm() << " without " << absent;
    }
  }
}

// Some of the servers, so that the others are in one piece.
Topology random_part(const Topology& whole, std::mt19937_64& random) {
  for (;;) {
    const double most[] = {0.1, 0.3, 0.6};
    std::bernoulli_distribution is_absent(most[random() % 3]);
    std::vector<ServerId> absent;
    for (ServerId server = 0; server < whole.servers(); ++server) {
      if (is_absent(random)) absent.push_back(server);
    }
    try {
      if (whole.servers() - absent.size() >= 2) return whole.without(absent);
    } catch (const std::invalid_argument&) {
      // In pieces: others.
    }
  }
}

TEST(PartialPlans, AreAllReducesOnRandomSetsOfServers) {
  const std::uint64_t seed = protocol::test_seed(20261123);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  std::vector<Topology> wholes = small_topologies(27);
  for (const char* spec : {"torus:3,2", "torus:4,2", "torus:5,1"}) {
    wholes.push_back(parse_topology(spec, "test"));
  }
  for (const Topology& whole : wholes) {
    for (unsigned draw = 0; draw < 2; ++draw) {
      const Topology topology = random_part(whole, random);
      SCOPED_TRACE(topology.spec() + " without " + topology.absent_text());
      const Placement all = Placement::all(topology);
      const std::vector<Plan> plans = fitting_plans(topology, all);
      for (const Plan& plan : plans) {
        EXPECT_NO_THROW(verify(plan)) << plan.algorithm();
        EXPECT_NO_THROW(verify(plan, draw_sample(plan, 7, 3))) << plan.algorithm();
      }
      EXPECT_TRUE(names_of(plans).contains(std::string(default_algorithm(topology))));
      std::vector<Rank> cycle = server_cycle(all);
      std::sort(cycle.begin(), cycle.end());
      EXPECT_EQ(cycle.size(), all.ranks());
      EXPECT_EQ(std::unique(cycle.begin(), cycle.end()), cycle.end());
      for (const auto& round : neighbour_rounds(topology)) {
        for (const NeighbourLink& link : round) {
          EXPECT_TRUE(topology.space().contains(link.first));
          EXPECT_TRUE(topology.space().contains(link.second));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
