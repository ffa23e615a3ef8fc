// The plan recursive_doubling: its steps by example, what it is verified to be, what it refuses,
// and which collectives run on it.
#include <cstdint>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/collective_layout.h"
#include "control/plan/verify.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr const char* kDoubling = "recursive_doubling";

// "[0,1] sends <0,0,0> receives <0,0,0>" of a rank's exchanges in a step.
std::string sent_text(const Plan& plan, Rank rank, Stage stage, unsigned step) {
  std::string text;
  for (const Exchange& e : plan.exchanges(rank, 0, stage, step)) {
    text += plan.space().text(plan.placement().server(e.peer)) + " sends " + e.send.text() +
            " receives " + e.receive.text() + "\n";
  }
  return text;
}

TEST(RecursiveDoubling, ExchangesTheWholeWithAllUnderEachSwitchLevelByLevel) {
  const Plan plan = plan_of(kDoubling, "bcube:3,2");
  EXPECT_EQ(plan.threads(), 1u);
  EXPECT_EQ(plan.pieces(), 1u);
  EXPECT_EQ(sent_text(plan, 4, Stage::aggregation, 0),
            "[1,0] sends <0,0,0> receives <0,0,0>\n[1,2] sends <0,0,0> receives <0,0,0>\n");
  EXPECT_EQ(sent_text(plan, 4, Stage::aggregation, 1),
            "[0,1] sends <0,0,0> receives <0,0,0>\n[2,1] sends <0,0,0> receives <0,0,0>\n");
  for (unsigned step = 0; step < 2; ++step) {
    EXPECT_EQ(sent_text(plan, 4, Stage::broadcast, step), "") << "all have the sum";
  }
}

TEST(RecursiveDoubling, HasOneStepUnderOneSwitch) {
  const Plan plan = plan_of(kDoubling, "star:9");
  EXPECT_EQ(plan.steps(), 1u);
  EXPECT_EQ(verify(plan).transfers, 9u * 8u);
}

// Each server sends the whole once to each neighbour.
TEST(RecursiveDoubling, BringsTheWholeOverEachLinkOnceForEachOfItsNeighbours) {
  for (const Topology& topology : small_topologies(81)) {
    SCOPED_TRACE(topology.spec());
    const VerifyReport report = verify(make_plan(kDoubling, topology, "test"));
    EXPECT_EQ(report.pieces, 1u);
    for (unsigned level = 0; level < topology.levels(); ++level) {
      EXPECT_EQ(report.link_pieces[level], topology.space().radix(level) - 1);
    }
  }
}

TEST(RecursiveDoubling, StepsOverTheLevelsOfATreeAndOfAPartOfTheServers) {
  EXPECT_EQ(verify(plan_of(kDoubling, "tree:4x3")).ranks, 12u);
  const Topology cube = parse_topology("bcube:4,2", "test");
  const Placement square = Placement::of(cube, std::vector<ServerId>{0, 2, 8, 10}, "test");
  const Plan plan = make_plan(kDoubling, cube, square, "test");
  EXPECT_EQ(plan.steps(), 2u);
  EXPECT_EQ(verify(plan).transfers, 4u * 2u);
}

TEST(RecursiveDoubling, RefusesServersThatAreNotAllNeighboursUnderSwitches) {
  EXPECT_EQ(refusal(kDoubling, "torus:4,2"),
            "algorithm recursive_doubling on topology torus:4,2: every server sends all to every "
            "other under one switch, and here cables join only adjacent servers; expected "
            "one that runs on these servers: blueconnect, blueconnect:ring, "
            "blueconnect:halving_doubling, halving_doubling, hips:mesh, hips:ring, hips:root, "
            "mesh, ps, ring");
  const Topology cube = parse_topology("bcube:3,2", "test");
  const auto refused = [&](const std::vector<ServerId>& members) {
    return message_of<UsageError>(
        [&] { make_plan(kDoubling, cube, Placement::of(cube, members, "test"), "test"); });
  };
  EXPECT_EQ(refused({0, 1, 3}),
            "algorithm recursive_doubling: these 3 servers of bcube:3,2 form no grid: [1,1] is "
            "missing; expected one that runs on these servers: mesh, ps, ring");
  EXPECT_NE(refused({4}).find("one server alone has nobody to exchange with"), std::string::npos);
  EXPECT_EQ(refusal("recursive_doubling:2", "star:4"),
            "--algorithm \"recursive_doubling:2\": recursive_doubling takes no parameters; "
            "expected recursive_doubling alone");
  EXPECT_NE(refusal("hips:doubling", "bcube:3,2").find("no stage runs the pattern"),
            std::string::npos);
}

TEST(RecursiveDoubling, IsOfStepsThatDoubleAlone) {
  const Topology cube = parse_topology("bcube:3,2", "test");
  const PlanStep doubling{3, 1, Pattern::doubling}, mesh{3, 3};
  EXPECT_EQ(message_of<std::invalid_argument>([&] {
              Plan("mixed", cube, Placement::all(cube), {{1, {doubling, mesh}}});
            }),
            "some steps double and others do not; expected all or none");
}

// Every position of a step is the same segment of the buffer as in all others, and no stage brings
// anything back.
TEST(RecursiveDoubling, CutsTheBufferIntoTheSameSegmentsInEveryStep) {
  const Plan plan = plan_of(kDoubling, "bcube:4x3x2");
  for (const std::uint64_t bytes : {0U, 1U, 64U, 1000U, 10'239U}) {
    const ThreadSchedule schedule(plan, 17, 0);
    const CollectiveLayout layout(schedule, {.bytes = bytes}, 1408, {});
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      EXPECT_EQ(layout.end(Stage::broadcast, w), 0u);
      ASSERT_EQ(layout.end(Stage::aggregation, w), layout.end(Stage::aggregation, 0));
      for (std::uint32_t q = 0; q < layout.round_length(w); ++q) {
        for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
          ASSERT_EQ(layout.segment(schedule, w, r, q), layout.segment(schedule, 0, 0, q));
        }
      }
    }
  }
}

TEST(RecursiveDoubling, RunsShortAllReducesAndBarriersAndTheDefaultAlgorithmTheRest) {
  for (const char* spec : {"bcube:3,2", "star:9", "tree:4x3"}) {
    const Topology topology = parse_topology(spec, "test");
    const PlanChoice choice = make_choice(kDoubling, topology, Placement::all(topology), "test");
    const std::string rest(default_algorithm(topology));
    const auto taken = [&](CollectiveKind kind, std::uint64_t bytes) {
      return choice.plan_of(kind, bytes).algorithm();
    };
    for (const std::uint64_t bytes : {0ULL, 1ULL, 1024ULL, 8000ULL, 8191ULL}) {
      EXPECT_EQ(taken(CollectiveKind::all_reduce, bytes), kDoubling);
      EXPECT_EQ(choice.plan_of_hub(bytes).algorithm(), rest);
      for (const CollectiveKind kind :
           {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_gather,
            CollectiveKind::reduce_scatter}) {
        EXPECT_EQ(taken(kind, bytes), rest);
      }
    }
    EXPECT_EQ(taken(CollectiveKind::barrier, 0), kDoubling);
    for (const std::uint64_t bytes : {10'240ULL, 1ULL << 20, 1ULL << 40, ~0ULL}) {
      EXPECT_EQ(taken(CollectiveKind::all_reduce, bytes), rest);
    }
  }
}

// With more frames it would send no fewer segments than `bml`.
TEST(RecursiveDoubling, RunsWhatTakesFewerThanTwoFramesForEachStep) {
  struct Bound {
    const char* spec;
    unsigned mtu;
    std::uint64_t most;
  };
  for (const auto& [spec, mtu, most] :
       {Bound{"star:9", 1280, 1023}, Bound{"star:9", 1500, 1279}, Bound{"star:9", 9000, 8191},
        Bound{"bcube:3,2", 1280, 3071}, Bound{"bcube:3,2", 1500, 4095},
        Bound{"bcube:3,2", 4200, 10'239}, Bound{"bcube:3,2", 9000, 10'239}}) {
    const Topology topology = parse_topology(spec, "test").with_mtu(mtu);
    for (const char* name : {kDoubling, "auto"}) {
      const PlanChoice choice = make_choice(name, topology, Placement::all(topology), "test");
      const auto taken = [&](std::uint64_t bytes) {
        return choice.plan_of(CollectiveKind::all_reduce, bytes).algorithm();
      };
      EXPECT_EQ(taken(most), kDoubling) << spec << ", MTU " << mtu;
      EXPECT_NE(taken(most + 1), kDoubling) << spec << ", MTU " << mtu;
    }
  }
}

std::string_view default_of_jobs(const Topology& topology) {
  return default_algorithm_of_jobs(topology, Placement::all(topology));
}

TEST(RecursiveDoubling, IsWhatJobsGetThatAskForNoneWhereSwitchesJoinServersAndNoLinkHasARate) {
  for (const char* spec : {"star:2", "star:9", "bcube:3,2", "bcube:4x3x2"}) {
    EXPECT_EQ(default_of_jobs(parse_topology(spec, "test")), kDoubling) << spec;
  }
  for (const char* spec : {"torus:4,2", "tree:4x3"}) {
    const Topology topology = parse_topology(spec, "test");
    EXPECT_EQ(default_of_jobs(topology), default_algorithm(topology));
  }
  const Topology cube = parse_topology("bcube:3,2", "test");
  EXPECT_EQ(default_of_jobs(cube.with_rates({0, 1'000'000'000})), "bml");
  const Topology star = parse_topology("star:4", "test");
  EXPECT_EQ(default_of_jobs(star.with_own_ports({{0, 2, 0}})), kDoubling);
  EXPECT_EQ(default_of_jobs(star.with_own_ports({{0, 2, 1'000'000'000}})), "bml");
  const auto of_members = [&](const std::vector<ServerId>& members) {
    return default_algorithm_of_jobs(cube, Placement::of(cube, members, "test"));
  };
  EXPECT_EQ(of_members({3, 4, 5}), kDoubling);
  EXPECT_EQ(of_members({4}), "bml") << "one alone exchanges nothing";
  EXPECT_EQ(of_members({0, 1, 3}),
            default_algorithm(cube, Placement::of(cube, std::vector<ServerId>{0, 1, 3}, "test")));
}

TEST(RecursiveDoubling, IsNoChoiceByItself) {
  const auto alone = std::make_shared<Plan>(plan_of(kDoubling, "star:3"));
  EXPECT_THROW(PlanChoice{alone}, std::invalid_argument);
}

TEST(RecursiveDoubling, IsWhatAutoTakesForShortBuffersAloneAndNeverForAnotherKind) {
  for (const char* spec : {"bcube:3,2", "star:9"}) {
    const Topology topology = parse_topology(spec, "test");
    const PlanChoice choice = make_choice("auto", topology, Placement::all(topology), "test");
    EXPECT_EQ(choice.plan_of(CollectiveKind::all_reduce, 1024).algorithm(), kDoubling);
    for (std::uint64_t bytes = 0; bytes < 1 << 20; bytes += 1000) {
      for (const CollectiveKind kind : kCollectiveKinds) {
        const Plan& plan = choice.plan_of(kind, bytes);
        EXPECT_TRUE(can_run(plan, kind, bytes)) << plan.algorithm() << ", " << bytes << " bytes";
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
