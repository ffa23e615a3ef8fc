// Trees of switches: how they are named, what their rates are, and what plans bring to uplinks.

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology_links.h"
#include "control/plan/neighbour_rounds.h"
#include "control/plan/plan_cost.h"
#include "control/plan/verify.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/link_rates.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr const char* kTrees[] = {"tree:2x2",   "tree:2x3",   "tree:3x2",    "tree:4x4",
                                  "tree:2x2x2", "tree:3x2x2", "tree:2x2x3x2"};

Topology tree(const char* spec) { return parse_topology(spec, "test"); }

// Whose servers' links have 1 Gbit/s.
Topology rated(const Topology& topology, std::uint64_t oversubscription) {
  return LinkRates(1'000'000'000).with_uplinks(topology, oversubscription).on(topology);
}

TEST(Trees, ListTheServersOfALowestSwitchFirst) {
  const Topology topology = tree("tree:4x3x2");
  EXPECT_EQ(topology.spec(), "tree:4x3x2");
  EXPECT_EQ(topology.servers(), 24u);
  EXPECT_EQ(topology.ports(), 1u);
  EXPECT_EQ(topology.levels(), 1u);
  EXPECT_EQ(topology.space(), parse_topology("star:24", "test").space());
  EXPECT_EQ(topology.dimensions(),
            (std::vector<Dimension>{
                {4, 0, 0, Link::switched}, {3, 0, 0, Link::uplink}, {2, 0, 0, Link::uplink}}));
  EXPECT_EQ(topology.sharers(0), 1u);
  EXPECT_EQ(topology.sharers(1), 4u);
  EXPECT_EQ(topology.sharers(2), 12u);
  EXPECT_EQ(topology_json(topology).dump(),
            R"({"spec":"tree:4x3x2","kind":"tree","radices":[4,3,2],"k":3,"servers":24})");
  EXPECT_EQ(topology_json(tree("tree:4x4")).dump(),
            R"({"spec":"tree:4x4","kind":"tree","radices":[4,4],"k":2,"servers":16})");
}

TEST(Trees, KnowTheHighestLinkBetweenTwoServers) {
  const Topology topology = tree("tree:4x3x2").with_rates({10, 20, 5});
  EXPECT_EQ(topology.link_level(0, 3, 0), 0u);
  EXPECT_EQ(topology.link_level(0, 4, 0), 1u);
  EXPECT_EQ(topology.link_level(11, 12, 0), 2u);
  EXPECT_EQ(topology.path_bps(0), 10u);
  EXPECT_EQ(topology.path_bps(1), 10u);
  EXPECT_EQ(topology.path_bps(2), 5u);
  EXPECT_EQ(topology.share_bps(1), 5);
}

TEST(Trees, AreRefusedWithWhatIsAccepted) {
  for (const char* spec : {"tree:", "tree:4", "tree:4,2", "tree:4x", "tree:1x4", "tree:4x1",
                           "tree:0x4", "tree:16x17", "tree:2x2x2x2x2x2x2x2", "tree:4x4:2"}) {
    const std::string message = message_of<UsageError>([&] { parse_topology(spec, "--topology"); });
    EXPECT_EQ(message.find(std::string("--topology \"") + spec + "\""), 0u) << message;
    EXPECT_NE(message.find("for example tree:4x2"), std::string::npos) << message;
  }
  EXPECT_EQ(tree("tree:16x16").servers(), 256u);
}

TEST(Trees, GiveUplinksWhatTheLinksBelowHaveDividedByTheOversubscription) {
  const Topology topology = tree("tree:4x2x2");
  const auto rates = [&](std::optional<std::uint64_t> oversubscription) {
    std::vector<std::uint64_t> all;
    const LinkRates by_level = LinkRates(1'000'000'000).with_uplinks(topology, oversubscription);
    for (unsigned level = 0; level < 3; ++level) all.push_back(by_level.of(level));
    return all;
  };
  EXPECT_EQ(rates({}), (std::vector<std::uint64_t>{1'000'000'000, 4'000'000'000, 8'000'000'000}));
  EXPECT_EQ(rates(4), (std::vector<std::uint64_t>{1'000'000'000, 1'000'000'000, 500'000'000}));
  const LinkRates given(std::vector<std::uint64_t>{3'000'000, 2'000'000, 1'000'000});
  EXPECT_EQ(given.with_uplinks(topology, {}), given);
  EXPECT_EQ(rated(topology, 2).dimensions()[2].rate_bps, 2'000'000'000u);
}

TEST(Trees, AloneHaveAnOversubscription) {
  for (const auto& [spec, rate] : {std::pair("star:9", "1gbit"), std::pair("tree:2x2", ""),
                                   std::pair("tree:2x2", "level0=1gbit,level1=1gbit")}) {
    ClusterSettings settings;
    settings.topology = tree(spec);
    settings.oversubscription = 4;
    if (*rate != '\0') settings.rates = parse_link_rates(rate, "test");
    const std::string message = message_of<UsageError>([&] { validate(settings); });
    EXPECT_EQ(message.find("oversubscription 4 is for a tree with one rate"), 0u) << message;
  }
  ClusterSettings settings;
  settings.oversubscription = 4;
  settings.topology = tree("tree:2x2");
  settings.rates = LinkRates(1'000'000'000);
  EXPECT_NO_THROW(validate(settings));
  EXPECT_EQ(settings.rated_topology().dimensions()[1].rate_bps, 500'000'000u);
}

TEST(Trees, HaveAGridOfTheirLevels) {
  const Topology topology = tree("tree:4x3");
  const std::vector<ServerId> columns = {1, 3, 9, 11};
  const Placement part = Placement::of(topology, columns, "test");
  EXPECT_EQ(part.dimensions(), (std::vector<GridDimension>{{0, 2, 1}, {1, 2, 2}}));
  for (Rank rank = 0; rank < 4; ++rank) {
    EXPECT_EQ(part.server(rank), columns[rank]);
    EXPECT_EQ(part.rank(columns[rank]), rank);
  }
  EXPECT_FALSE(part.rank(0).has_value());
  const std::vector<ServerId> crooked = {0, 1, 4};
  EXPECT_FALSE(Placement::of(topology, crooked, "test").is_grid());
  const Topology partial = topology.without({11});
  EXPECT_EQ(Placement::all(partial).ranks(), 11u);
  EXPECT_FALSE(Placement::all(partial).is_grid());
}

TEST(Trees, HaveEveryAlgorithmsPlanProved) {
  for (const char* spec : kTrees) {
    const Topology topology = tree(spec);
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + spec);
      const VerifyReport report = verify(plan);
      EXPECT_EQ(report.ranks, topology.servers());
      ASSERT_EQ(report.link_pieces.size(), topology.link_levels());
      // The cost counts what the exchanges of the plan bring to each link.
      const PlanCost cost(plan);
      if (plan.threads() > 1) continue;
      for (unsigned level = 0; level < topology.link_levels(); ++level) {
        EXPECT_NEAR(cost.share(level),
                    static_cast<double>(report.link_pieces[level]) / report.pieces, 1e-9);
      }
    }
  }
}

TEST(Trees, HavePlansForPartsOfTheirServers) {
  const Topology topology = tree("tree:3x3");
  const std::vector<std::vector<ServerId>> parts = {
      {0, 1, 2}, {0, 3, 6}, {0, 1, 3, 4}, {0, 1, 2, 5, 7}, {4, 8}};
  for (const std::vector<ServerId>& members : parts) {
    const Placement placement = Placement::of(topology, members, "test");
    EXPECT_NO_THROW(make_plan(default_algorithm(topology, placement), topology, placement, "t"));
    for (const Plan& plan : fitting_plans(topology, placement)) {
      SCOPED_TRACE(plan.algorithm());
      EXPECT_EQ(verify(plan).ranks, members.size());
    }
  }
}

TEST(Trees, RunBlueConnectUnlessAJobAsksForAnother) {
  const Topology topology = tree("tree:4x4");
  EXPECT_EQ(default_algorithm(topology), "blueconnect");
  const std::vector<ServerId> rack = {4, 5, 6, 7};
  EXPECT_EQ(default_algorithm(topology, Placement::of(topology, rack, "test")), "bml");
}

// In the order of its servers' places, each switch sends to the next and hears from the one before.
TEST(Trees, BringOneFlowOfARingToEachUplink) {
  for (const char* spec : kTrees) {
    const Topology topology = tree(spec);
    const VerifyReport report = verify(plan_of("ring", spec));
    const std::vector<std::uint64_t> one_flow(topology.link_levels(), 2 * (topology.servers() - 1));
    EXPECT_EQ(report.link_pieces, one_flow) << spec;
  }
}

// BlueConnect, section 3: what is left of the buffer behind the switches crosses between them.
TEST(Trees, BringToUplinksOfBlueConnectWhatIsLeftBehindTheSwitches) {
  const VerifyReport report = verify(plan_of("blueconnect", "tree:4x4"));
  EXPECT_EQ(report.pieces, 16u);
  EXPECT_EQ(report.link_pieces, (std::vector<std::uint64_t>{2 * 15, 2 * 4 * 3}));
  // A flat mesh brings to them what each of the four sends to twelve others.
  EXPECT_EQ(verify(plan_of("mesh", "tree:4x4")).link_pieces,
            (std::vector<std::uint64_t>{2 * 15, 2 * 4 * 12}));
}

TEST(Trees, LetBlueConnectBeginWithTheFasterShare) {
  const Topology topology = tree("tree:4x2");
  const auto first_radix = [&](std::vector<std::uint64_t> rates) {
    return make_plan("blueconnect:ring", topology.with_rates(rates), "test").radix(0, 0);
  };
  EXPECT_EQ(first_radix({100, 400}), 4u);  // a quarter of the uplink is as fast
  EXPECT_EQ(first_radix({100, 200}), 4u);
  EXPECT_EQ(first_radix({100, 800}), 2u);
}

double seconds_of(const std::string& algorithm, const Topology& topology) {
  CostParameters parameters = cost_parameters(topology, {0, {0}});
  parameters.frame_bytes = 0;
  return PlanCost(make_plan(algorithm, topology, "test"))
      .time(CollectiveKind::all_reduce, 1e8, parameters)
      .seconds();
}

TEST(Trees, CostWhatTheirUplinksTakeWhereTheseAreOversubscribed) {
  const auto of_four_racks = [](std::uint64_t times) { return rated(tree("tree:4x4"), times); };
  const double port = 2 * 15.0 / 16 * 0.8;
  EXPECT_NEAR(seconds_of("ring", of_four_racks(1)), port, 0.01 * port);
  EXPECT_NEAR(seconds_of("ring", of_four_racks(4)), port,
              0.01 * port);  // an uplink is one link fast
  EXPECT_NEAR(seconds_of("ring", of_four_racks(8)), 2 * port, 0.02 * port);
  // Each uplink carries the buffer three times in each stage.
  EXPECT_NEAR(seconds_of("mesh", of_four_racks(4)), 6 * 0.8, 0.1);
  EXPECT_LT(seconds_of("blueconnect", of_four_racks(4)),
            0.5 * seconds_of("mesh", of_four_racks(4)));
}

TEST(Trees, ChooseByWhatUplinksCarry) {
  const Topology topology = rated(tree("tree:4x4"), 8);
  const PlanChoice choice = make_choice("auto", topology, Placement::all(topology), "test");
  const Plan& chosen = choice.plan_of(CollectiveKind::all_reduce, 100'000'000);
  const double least = seconds_of(chosen.algorithm(), topology);
  for (const char* other : {"mesh", "halving_doubling", "ps", "hips:mesh"}) {
    EXPECT_LT(least, seconds_of(other, topology)) << other << " against " << chosen.algorithm();
  }
}

TEST(Trees, AreMeasuredInRoundsInWhichNoTwoPairsShareALink) {
  for (const char* spec : {"tree:2x3", "tree:4x2", "tree:2x2x2"}) {
    const Topology topology = tree(spec);
    const TopologyLinks links(topology);
    std::set<std::pair<ServerId, ServerId>> pairs;
    for (const auto& round : neighbour_rounds(topology)) {
      std::set<TopologyLinks::Number> used;
      for (const NeighbourLink& link : round) {
        EXPECT_TRUE(pairs.insert({link.first, link.second}).second);
        links.for_each(link.first, bcube::shortest_route(topology.space(), link.first, link.second),
                       [&](auto number) { EXPECT_TRUE(used.insert(number).second); });
      }
    }
    EXPECT_EQ(pairs.size(), topology.servers() * (topology.servers() - 1) / 2) << spec;
  }
}

TEST(Trees, NameTheirLinks) {
  const Topology topology = tree("tree:2x3");
  const TopologyLinks links(topology);
  EXPECT_EQ(links.count(), 6u * 2 + 3 * 2);
  std::map<std::string, unsigned> levels;
  links.for_each(1, bcube::shortest_route(topology.space(), 1, 4),
                 [&](auto link) { levels[links.text(link)] = links.level(link); });
  const std::map<std::string, unsigned> expected = {{"[1]'s port 0", 0},
                                                    {"the uplink of [0] to [1]", 1},
                                                    {"the uplink of [4] to [5]", 1},
                                                    {"[4]'s port 0", 0}};
  EXPECT_EQ(levels, expected);
}

}  // namespace
}  // namespace gradcube::control
