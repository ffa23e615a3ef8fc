#include <cstdint>
#include <gtest/gtest.h>
#include <numeric>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/verify.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {
namespace {

// All ways to write a number as an ordered product, "2x3x2" among those of 12.
std::vector<std::string> factorizations(std::uint32_t number) {
  std::vector<std::string> all = {std::to_string(number)};
  for (std::uint32_t first = 2; first < number; ++first) {
    if (number % first != 0) continue;
    for (const std::string& rest : factorizations(number / first)) {
      all.push_back(std::to_string(first) + "x" + rest);
    }
  }
  return all;
}

TEST(BlueConnect, GoesFromTheInnermostFactorToTheOutermost) {
  const Plan plan = plan_of("blueconnect:2x5x3,ring", "star:30");
  ASSERT_EQ(plan.threads(), 1u);
  EXPECT_EQ(plan.thread(0).steps,
            (std::vector<PlanStep>{
                {3, 1, Pattern::ring}, {5, 3, Pattern::ring}, {2, 15, Pattern::ring}}));
}

TEST(BlueConnect, TakesTheLevelsOfTheServersWhereNoFactorsAreAskedFor) {
  const Topology topology = parse_topology("bcube:5x2x3", "test");
  EXPECT_EQ(
      make_plan("blueconnect:ring", topology, "test").thread(0).steps,
      (std::vector<PlanStep>{{3, 1, Pattern::ring}, {2, 3, Pattern::ring}, {5, 6, Pattern::ring}}));
  const Placement row = Placement::of(topology, std::vector<ServerId>{0, 2, 24, 26}, "test");
  EXPECT_EQ(make_plan("blueconnect:ring", topology, row, "test").thread(0).steps,
            (std::vector<PlanStep>{{2, 1, Pattern::ring}, {2, 2, Pattern::ring}}));
}

// The rates are by level, from level 0 on.
std::vector<PlanStep> steps_at(const std::vector<std::uint64_t>& rates, const std::string& spec,
                               const char* name) {
  return make_plan(name, parse_topology(spec, "test").with_rates(rates), "test").thread(0).steps;
}

TEST(BlueConnect, GoesFromTheFastestLevelToTheSlowest) {
  const PlanStep low{5, 1, Pattern::ring};
  const PlanStep middle{3, 5, Pattern::ring};
  const PlanStep high{2, 15, Pattern::ring};
  const auto steps = [](const std::vector<std::uint64_t>& rates) {
    return steps_at(rates, "bcube:2x3x5", "blueconnect:ring");
  };
  EXPECT_EQ(steps({4, 4, 4}), (std::vector<PlanStep>{low, middle, high}));
  EXPECT_EQ(steps({4, 2, 1}), (std::vector<PlanStep>{low, middle, high}));
  EXPECT_EQ(steps({1, 2, 4}), (std::vector<PlanStep>{high, middle, low}));
  EXPECT_EQ(steps({1, 4, 1}), (std::vector<PlanStep>{middle, low, high})) << "equal ones ascend";
  EXPECT_EQ(steps({1, 4, 0}), (std::vector<PlanStep>{high, middle, low})) << "0 is no limit";
}

TEST(BlueConnect, GoesByTheRatesOfTheLevelsThatTheServersHave) {
  const Topology topology = parse_topology("bcube:2x3x5", "test").with_rates({2, 9, 4});
  const Placement two_levels = Placement::of(topology, std::vector<ServerId>{0, 1, 15, 16}, "test");
  EXPECT_EQ(make_plan("blueconnect:ring", topology, two_levels, "test").thread(0).steps,
            (std::vector<PlanStep>{{2, 2, Pattern::ring}, {2, 1, Pattern::ring}}));
}

TEST(BlueConnect, LeavesEachLevelItsPatternWhateverTheRatesAre) {
  EXPECT_EQ(steps_at({1, 4}, "bcube:3x4", "blueconnect:ring,halving_doubling"),
            (std::vector<PlanStep>{{3, 4, Pattern::ring}, {2, 2}, {2, 1}}));
}

TEST(BlueConnect, TakesFactorsInTheOrderOfTheNameWhateverTheRatesAre) {
  EXPECT_EQ(steps_at({1, 4}, "bcube:3x4", "blueconnect:3x4,ring"),
            (std::vector<PlanStep>{{4, 1, Pattern::ring}, {3, 4, Pattern::ring}}));
}

TEST(BlueConnect, GivesASlowLevelWhatTheFastOneHasLeftAndIsProvedThere) {
  for (const char* spec : {"bcube:4,2", "bcube:3x4", "torus:4,2", "bcube:2x2x4"}) {
    const Topology whole = parse_topology(spec, "test");
    std::vector<std::uint64_t> rates(whole.levels(), 4);
    rates[0] = 1;
    for (const char* name : {"blueconnect", "blueconnect:ring"}) {
      SCOPED_TRACE(std::string(name) + " on " + spec);
      const VerifyReport report = verify(make_plan(name, whole.with_rates(rates), "test"));
      EXPECT_EQ(report.link_pieces[0], 2 * (whole.space().radix(0) - 1));
    }
  }
}

TEST(BlueConnect, HalvesAFactorFromItsFarthestRanksOn) {
  const std::vector<PlanStep> steps = {{3, 1, Pattern::ring}, {2, 6}, {2, 3}};
  EXPECT_EQ(plan_of("blueconnect:4x3,halving_doubling,ring", "star:12").thread(0).steps, steps);
  // The cheaper by the paper's Eq. 3.
  EXPECT_EQ(plan_of("blueconnect:4x3", "star:12").thread(0).steps, steps);
}

TEST(BlueConnect, OfOneHalvedFactorIsHalvingAndDoubling) {
  for (const char* spec : {"star:8", "bcube:4,2", "bcube:2,4"}) {
    const std::string ranks = std::to_string(parse_topology(spec, "test").servers());
    EXPECT_EQ(plan_of("blueconnect:" + ranks, spec).thread(0),
              plan_of("halving_doubling", spec).thread(0));
  }
}

TEST(BlueConnect, PromisesExclusiveLinksWhereItsPeersAreNeighbours) {
  EXPECT_EQ(plan_of("blueconnect", "bcube:3,2").link_use(), LinkUse::exclusive);
  EXPECT_EQ(plan_of("blueconnect:2x2x2x2,ring", "bcube:4,2").link_use(), LinkUse::exclusive);
  EXPECT_EQ(plan_of("blueconnect:2x8,ring", "bcube:4,2").link_use(), LinkUse::shared);
  EXPECT_EQ(plan_of("blueconnect:9", "bcube:3,2").link_use(), LinkUse::shared);
}

// What Eq. 10 takes with a node of one learner: the levels in turn, n-1 of n parts of what is left.
TEST(BlueConnect, KeepsALevelBusyWithWhatTheLevelsBelowHaveLeft) {
  for (const char* name : {"blueconnect", "blueconnect:ring", "blueconnect:halving_doubling"}) {
    const VerifyReport report = verify(plan_of(name, "bcube:4,2"));
    EXPECT_EQ(report.pieces, 16u);
    EXPECT_EQ(report.link_pieces, (std::vector<std::uint64_t>{2 * 12, 2 * 3}));
  }
}

TEST(BlueConnect, IsProvedOnEverySmallTopology) {
  for (const Topology& topology : small_topologies(81)) {
    for (const char* name : {"blueconnect", "blueconnect:ring"}) {
      SCOPED_TRACE(std::string(name) + " on " + topology.spec());
      const Plan plan = make_plan(name, topology, "test");
      EXPECT_EQ(plan.link_use(), LinkUse::exclusive);
      const VerifyReport report = verify(plan);
      EXPECT_EQ(
          std::accumulate(report.link_pieces.begin(), report.link_pieces.end(), std::uint64_t{0}),
          2 * (topology.servers() - 1));
    }
  }
}

TEST(BlueConnect, IsProvedForEveryFactorizationWhateverTheLevelsAre) {
  for (const Topology& topology :
       {parse_topology("star:16", "test"), parse_topology("bcube:4,2", "test"),
        parse_topology("bcube:2,4", "test"), parse_topology("star:30", "test"),
        parse_topology("bcube:4x3x2", "test"), parse_topology("bcube:2x2x3", "test")}) {
    for (const std::string& factors : factorizations(topology.servers())) {
      for (const char* patterns : {"", ",ring"}) {
        const std::string name = "blueconnect:" + factors + patterns;
        SCOPED_TRACE(name + " on " + topology.spec());
        EXPECT_EQ(verify(make_plan(name, topology, "test")).pieces, topology.servers());
      }
    }
  }
}

TEST(BlueConnect, RefusesFactorsWhoseProductIsAnotherNumber) {
  const char* const kExpected = "; expected factors whose product it is, for example 4x4";
  EXPECT_EQ(refusal("blueconnect:4x3", "bcube:4,2"),
            "algorithm blueconnect:4x3 on 16 servers: the product of 4x3 is not 16" +
                std::string(kExpected));
  EXPECT_EQ(refusal("blueconnect:65536x65536x65536x65536x16", "bcube:4,2"),
            "algorithm blueconnect:65536x65536x65536x65536x16 on 16 servers: the product of "
            "65536x65536x65536x65536x16 is not 16" +
                std::string(kExpected));
}

TEST(BlueConnect, RefusesWhatIsNoFactor) {
  for (const char* factors : {"4x", "4xx4", "1x16", "0x4", "4x4 ", "4x-4", "4x99999999999"}) {
    EXPECT_NE(refusal(std::string("blueconnect:") + factors, "bcube:4,2")
                  .find("is no factor; expected whole numbers from 2 with an x between them"),
              std::string::npos)
        << factors;
  }
}

TEST(BlueConnect, TakesOnePatternForAllStagesOrOneForEach) {
  EXPECT_EQ(refusal("blueconnect:4x4,ring,ring,ring", "bcube:4,2"),
            "algorithm blueconnect:4x4,ring,ring,ring on 16 servers: it lists 3 patterns; expected "
            "1 for all stages, or 2: one for each factor of 4x4");
  for (const char* name : {"blueconnect:mesh", "blueconnect:", "blueconnect:4x4,",
                           "blueconnect:,"
                           "ring"}) {
    EXPECT_NE(refusal(name, "bcube:4,2").find("expected ring or halving_doubling"),
              std::string::npos)
        << name;
  }
}

TEST(BlueConnect, RefusesToHalveWhatIsNoPowerOfTwoAndARingThatIsTooLong) {
  EXPECT_EQ(refusal("blueconnect:4x3,halving_doubling", "star:12"),
            "algorithm blueconnect:4x3,halving_doubling on 12 servers: 3 servers cannot be halved "
            "down to one; expected a power of two, or the pattern ring");
  EXPECT_EQ(refusal("blueconnect:289", "bcube:17,2"),
            "algorithm blueconnect:289 on 289 servers: one ring has at most 256 servers, not 289; "
            "expected smaller factors");
}

TEST(BlueConnect, HasANameThatTravelsWithTwoLongPatterns) {
  const std::string name = "blueconnect:4x4,halving_doubling,halving_doubling";
  EXPECT_LT(name.size(), shared::kAlgorithmNameBytes);
  EXPECT_EQ(plan_of(name, "bcube:4,2").algorithm(), name);
}

}  // namespace
}  // namespace gradcube::control
