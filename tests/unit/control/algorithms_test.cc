#include "control/plan/algorithms.h"

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/auto_plans.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {
namespace {

// That the two plans differ in nothing but their names.
void expect_same_threads(const Plan& plan, const Plan& other) {
  ASSERT_EQ(plan.threads(), other.threads());
  for (unsigned t = 0; t < plan.threads(); ++t) EXPECT_EQ(plan.thread(t), other.thread(t));
  EXPECT_EQ(plan.link_use(), other.link_use());
}

TEST(Algorithms, AreFoundByName) {
  EXPECT_EQ(algorithm_names(),
            (std::vector<std::string>{"bml", "blueconnect", "blueconnect:ring",
                                      "blueconnect:halving_doubling", "halving_doubling",
                                      "hips:mesh", "hips:ring", "hips:root", "mesh", "ps",
                                      "recursive_doubling", "ring", "two-level"}));
  for (const std::string& name : algorithm_names()) {
    EXPECT_EQ(plan_of(name, "bcube:2,2").algorithm(), name);
  }
  EXPECT_EQ(plan_of("bml", "star:5").threads(), 1u);
  EXPECT_EQ(plan_of("mesh", "bcube:3,2").steps(), 1u);
}

TEST(Algorithms, NameThoseThatExistWhereOneIsUnknown) {
  for (const char* name : {"magic", "", "hip", "magic:mesh"}) {
    EXPECT_EQ(refusal(name, "star:5"),
              "--algorithm \"" + std::string(name) +
                  "\": there is no such algorithm; expected bml, blueconnect, blueconnect:ring, "
                  "blueconnect:halving_doubling, halving_doubling, hips:mesh, hips:ring, "
                  "hips:root, mesh, ps, recursive_doubling, ring, two-level, or auto");
  }
}

TEST(Algorithms, SayWhichParametersTheyTake) {
  EXPECT_EQ(refusal("mesh:4", "star:5"),
            "--algorithm \"mesh:4\": mesh takes no parameters; expected mesh alone");
  EXPECT_EQ(refusal("hips", "star:5"),
            "--algorithm \"hips\": expected a pattern for all stages or a list with one for each, "
            "for example hips:mesh or hips:mesh,mesh");
  for (const char* pattern : {"", "star", "local", "MESH", "2xmesh", "xroot", "0xroot", "02xroot",
                              "-1xroot", "2x", "2root", "2xroot "}) {
    EXPECT_EQ(refusal(std::string("hips:mesh,") + pattern, "bcube:3,2"),
              "--algorithm \"hips:mesh," + std::string(pattern) +
                  "\": no stage runs the pattern \"" + pattern +
                  "\"; expected mesh, ring, root, "
                  "or 2xroot for two roots in each group");
  }
}

TEST(Algorithms, RefuseATopologyTheyDoNotFit) {
  EXPECT_EQ(refusal("mesh", "bcube:17,2"),
            "algorithm mesh: a step has at most 256 servers, and here are 289; expected one that "
            "runs on these servers: bml, blueconnect, blueconnect:ring, hips:mesh, hips:ring, "
            "hips:root, recursive_doubling, two-level");
  EXPECT_NE(refusal("ring", "bcube:17,2").find("algorithm ring: a step has at most 256 servers"),
            std::string::npos);
}

TEST(Algorithms, RefuseASingleServer) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Placement alone = Placement::of(topology, std::vector<ServerId>{4}, "test");
  EXPECT_TRUE(fitting_plans(topology, alone).empty());
}

TEST(Algorithms, HaveNamesThatTravelWithAParameterForEachLevel) {
  std::string name = "hips:mesh";
  for (unsigned level = 1; level < kMaxDimensions; ++level) name += ",mesh";
  EXPECT_LT(name.size(), shared::kAlgorithmNameBytes);
  EXPECT_EQ(plan_of(name, "bcube:2,7").algorithm(), name);
}

TEST(Algorithms, RefuseNamesThatNoJobCanAskFor) {
  static_assert(kMostNameBytes == shared::kAlgorithmNameBytes - 1);
  const Topology topology = parse_topology("bcube:2,3", "test");
  const Placement all = Placement::all(topology);
  const auto name_of = [](std::size_t bytes) {
    return "auto:1us," + std::string(bytes - 11, '0') + "us";
  };
  EXPECT_NO_THROW(make_choice(name_of(55), topology, all, "test"));
  const std::string reason = "the name has 56 bytes; expected at most 55";
  EXPECT_NE(
      message_of<UsageError>([&] { make_choice(name_of(56), topology, all, "test"); }).find(reason),
      std::string::npos);
  const std::string longer = "blueconnect:2x2x2,halving_doubling,halving_doubling,ring";
  EXPECT_NE(refusal(longer, "bcube:2,3").find(reason), std::string::npos);
}

TEST(Algorithms, AreKnownByNameBeforeThereAreServers) {
  for (const std::string& name : algorithm_names()) EXPECT_NO_THROW(require_algorithm(name, "x"));
  for (const char* name : {"auto", "auto:1us,2us", "ps:9,9", "hips:bogus"}) {
    EXPECT_NO_THROW(require_algorithm(name, "test")) << name;
  }
  EXPECT_EQ(message_of<UsageError>([] {
              require_algorithm("bogus:mesh", "test");
            }).find("test \"bogus:mesh\": there is no such algorithm; expected bml, "),
            0u);
  EXPECT_THROW(require_algorithm("", "test"), UsageError);
  EXPECT_THROW(require_algorithm(std::string(56, 'x'), "test"), UsageError);
}

TEST(HalvingDoubling, HalvesTheRanksFromTheFarthestOn) {
  const Plan plan = plan_of("halving_doubling", "bcube:4,2");
  ASSERT_EQ(plan.threads(), 1u);
  EXPECT_EQ(plan.thread(0).steps, (std::vector<PlanStep>{{2, 8}, {2, 4}, {2, 2}, {2, 1}}));
  // Rank 5 = 0101 exchanges with 1101 first, and gives it the upper half.
  const std::vector<Exchange> first = plan.exchanges(5, 0, Stage::aggregation, 0);
  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].peer, 13u);
  EXPECT_EQ(first[0].send.text(), "<0,1,*,*,*>");
  EXPECT_EQ(plan.exchanges(5, 0, Stage::broadcast, 0)[0].peer, 4u);
}

TEST(HalvingDoubling, JoinsNeighboursAloneAndRefusesWhatIsNoPowerOfTwo) {
  for (const Topology& topology : small_topologies(81)) {
    for (const std::vector<ServerId>& members :
         topology.servers() <= 12 ? all_grids(topology) : std::vector<std::vector<ServerId>>{}) {
      if (members.size() < 2) continue;
      const Placement placement = Placement::of(topology, members, "test");
      const auto make = [&] { return make_plan("halving_doubling", topology, placement, "test"); };
      if ((members.size() & (members.size() - 1)) != 0) {
        EXPECT_NE(message_of<UsageError>([&] { make(); })
                      .find(" servers: every step halves them, down from a power of two; expected "
                            "one that runs on these servers: "),
                  std::string::npos);
        continue;
      }
      const Plan plan = make();
      for (unsigned w = 0; w < plan.steps(); ++w) EXPECT_TRUE(plan.level(0, w).has_value());
    }
  }
}

TEST(Ring, JoinsNeighboursAndOwnsThePiecesInTheOrderOfTheCycle) {
  const Plan plan = plan_of("ring", "bcube:3,2");
  const AddressSpace& space = plan.space();
  ASSERT_EQ(plan.threads(), 1u);
  ASSERT_EQ(plan.steps(), 1u);
  for (Rank rank = 0; rank < plan.ranks(); ++rank) {
    const std::vector<Exchange> exchanges = plan.exchanges(rank, 0, Stage::aggregation, 0);
    ASSERT_EQ(exchanges.size(), 8u);
    for (const Exchange& e : exchanges) {
      EXPECT_EQ(plan.route(rank, e.peer).size(), 1u);
      EXPECT_EQ(plan.route(e.source, rank).size(), 1u);
    }
    EXPECT_EQ(exchanges.back().receive, plan.owned(rank, 0));
  }
  EXPECT_EQ(plan.exchanges(space.parse("0,2"), 0, Stage::aggregation, 0)[0].peer,
            space.parse("1,2"));
}

TEST(Hips, WithMeshInEveryStageHasTheExchangesOfBml) {
  for (const Topology& topology : small_topologies(81)) {
    SCOPED_TRACE(topology.spec());
    expect_same_threads(make_plan("hips:mesh", topology, "test"),
                        make_plan("bml", topology, "test"));
  }
  expect_same_threads(plan_of("hips:mesh,mesh,mesh", "bcube:3,3"), plan_of("bml", "bcube:3,3"));
}

TEST(Hips, ListsThePatternsOfTheStagesOfEveryProcess) {
  const Plan plan = plan_of("hips:mesh,ring", "bcube:3,2");
  EXPECT_EQ(plan.thread(0).steps,
            (std::vector<PlanStep>{{3, 1, Pattern::mesh}, {3, 3, Pattern::ring}}));
  EXPECT_EQ(plan.thread(1).steps,
            (std::vector<PlanStep>{{3, 3, Pattern::mesh}, {3, 1, Pattern::ring}}));
}

TEST(Hips, TakesOnePatternForAllStagesOrOneForEach) {
  EXPECT_EQ(refusal("hips:mesh,mesh,mesh", "bcube:3,2"),
            "algorithm hips:mesh,mesh,mesh on 9 servers: it lists 3 patterns; expected 1 for all "
            "stages, or 2: one for each level at which the servers have several digits");
  EXPECT_EQ(refusal("hips:mesh,mesh", "star:3"),
            "algorithm hips:mesh,mesh on 3 servers: it lists 2 patterns; expected 1 for all "
            "stages, of which there is one here");
}

}  // namespace
}  // namespace gradcube::control
