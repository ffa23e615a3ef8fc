// Plans on a torus: which algorithms run there, that they are all-reduces, and what their links
// carry.
#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/algorithms/rotated_levels.h"
#include "control/plan/verify.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

std::vector<Topology> small_tori() {
  std::vector<Topology> all;
  for (const char* spec : {"torus:3,1", "torus:4,1", "torus:5,1", "torus:8,1", "torus:3,2",
                           "torus:4,2", "torus:5,2", "torus:9,2", "torus:3,3", "torus:3,4"}) {
    all.push_back(parse_topology(spec, "test"));
  }
  return all;
}

TEST(TorusPlans, AreProvenForEveryAlgorithmThatRunsThere) {
  for (const Topology& topology : small_tori()) {
    const std::vector<Plan> plans = fitting_plans(topology, Placement::all(topology));
    EXPECT_GE(plans.size(), 8u) << topology.spec();
    for (const Plan& plan : plans) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      EXPECT_EQ(verify(plan).ranks, topology.servers());
    }
  }
}

// Parts of rings too, whose ends no cable joins.
TEST(TorusPlans, AreProvenOnEveryGridOfServers) {
  for (const char* spec : {"torus:6,1", "torus:3,2"}) {
    const Topology topology = parse_topology(spec, "test");
    for (const std::vector<ServerId>& members : all_grids(topology)) {
      for (const Plan& plan : fitting_plans(topology, Placement::of(topology, members, "test"))) {
        SCOPED_TRACE(plan.algorithm() + " on " + spec);
        ASSERT_EQ(verify(plan).ranks, members.size());
      }
    }
  }
}

// HiPS, section 4.2: each port of a server sends for one of 2h threads.
TEST(TorusPlans, TheRingsOfHipsKeepEveryPortEquallyBusyAndShareNone) {
  for (const Topology& topology : small_tori()) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("hips:ring", topology, "test");
    EXPECT_EQ(plan.threads(), topology.ports());
    EXPECT_EQ(plan.link_use(), LinkUse::exclusive);
    const VerifyReport report = verify(plan);
    EXPECT_EQ(report.pieces, topology.ports() * topology.servers());
    for (const std::uint64_t pieces : report.link_pieces) {
      EXPECT_EQ(pieces, 2 * (std::uint64_t{topology.servers()} - 1));
    }
    // The bound is met exactly when each of the ports carries as much.
    EXPECT_EQ(report.transfers,
              std::uint64_t{topology.servers()} * topology.ports() * 2 * (topology.servers() - 1));
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      const Exchange first = plan.exchanges(0, thread, Stage::aggregation, 0).front();
      const Route route = plan.route(0, first.peer);
      ASSERT_EQ(route.size(), 1u);
      EXPECT_EQ(topology.space().port_of(0, route[0].level, route[0].digit), thread);
    }
  }
}

TEST(TorusPlans, TheFlatRingGoesBothWaysOverOneHopLinks) {
  for (const Topology& topology : small_tori()) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("ring", topology, "test");
    EXPECT_EQ(plan.threads(), 2u);
    EXPECT_EQ(plan.link_use(), LinkUse::exclusive);
    std::uint64_t most = 0;
    for (const std::uint64_t pieces : verify(plan).link_pieces) most = std::max(most, pieces);
    EXPECT_EQ(most, 2 * (std::uint64_t{topology.servers()} - 1));
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      const Rank next = plan.exchanges(rank, 0, Stage::aggregation, 0).front().peer;
      EXPECT_EQ(plan.route(rank, next).size(), 1u);
      EXPECT_EQ(plan.exchanges(next, 1, Stage::aggregation, 0).front().peer, rank);
    }
  }
}

TEST(TorusPlans, PromiseNoLinkForOneTransferWhereRingsAreNotWhole) {
  const Topology topology = parse_topology("torus:5,2", "test");
  const std::vector<ServerId> row = {0, 1, 2};
  const Placement part = Placement::of(topology, row, "test");
  const std::vector<ServerId> whole_row = {0, 1, 2, 3, 4};
  const Placement whole = Placement::of(topology, whole_row, "test");
  for (const char* algorithm : {"hips:ring", "ring", "blueconnect", "blueconnect:ring"}) {
    EXPECT_EQ(make_plan(algorithm, topology, part, "test").link_use(), LinkUse::shared);
    EXPECT_EQ(make_plan(algorithm, topology, whole, "test").link_use(), LinkUse::exclusive);
  }
}

TEST(TorusPlans, AVerifierFindsTwoRingsInOneDirection) {
  const Topology topology = parse_topology("torus:4,2", "test");
  const Placement all = Placement::all(topology);
  const std::vector<Pattern> rings(2, Pattern::ring);
  std::vector<PlanThread> threads = rotated_threads(all, rings);
  for (PlanThread& thread : rotated_threads(all, rings)) threads.push_back(std::move(thread));
  EXPECT_THROW(verify(Plan("x", topology, all, threads)), PlanError);
  EXPECT_NO_THROW(verify(Plan("x", topology, all, threads, LinkUse::shared)));
}

TEST(TorusPlans, BlueConnectHasARingForEachDimension) {
  const Plan plan = plan_of("blueconnect", "torus:4,2");
  EXPECT_EQ(plan.link_use(), LinkUse::exclusive);
  ASSERT_EQ(plan.steps(0), 2u);
  EXPECT_TRUE(plan.step(0, 0).is_ring());
  EXPECT_TRUE(plan.step(0, 1).is_ring());
  EXPECT_EQ(plan_of("blueconnect:halving_doubling", "torus:4,2").link_use(), LinkUse::shared);
  EXPECT_EQ(plan_of("blueconnect:2x8,ring", "torus:4,2").link_use(), LinkUse::shared);
}

TEST(TorusPlans, JobsGetTheRingsOfHipsThere) {
  EXPECT_EQ(default_algorithm(parse_topology("torus:4,2", "test")), "hips:ring");
  EXPECT_EQ(default_algorithm(parse_topology("bcube:4,2", "test")), "bml");
  EXPECT_EQ(default_algorithm(parse_topology("star:4", "test")), "bml");
}

TEST(TorusPlans, RefuseAlgorithmsThatNeedSwitches) {
  EXPECT_EQ(refusal("bml", "torus:4,2"),
            "algorithm bml on topology torus:4,2: every server sends to every other under one "
            "switch, and here cables join only adjacent servers; expected one that runs "
            "on these servers: blueconnect, blueconnect:ring, blueconnect:halving_doubling, "
            "halving_doubling, hips:mesh, hips:ring, hips:root, mesh, ps, ring");
}

// The algorithms that a refusal names.
std::string advice_of(const std::string& text) {
  constexpr std::string_view kExpected = "expected one that runs on these servers: ";
  const std::size_t begin = text.find(kExpected);
  return begin == std::string::npos ? text : text.substr(begin + kExpected.size());
}

TEST(TorusPlans, AdviseOnlyAlgorithmsThatRunOnTheServersAtHand) {
  EXPECT_EQ(advice_of(refusal("bml", "torus:18,1")),
            "blueconnect, blueconnect:ring, hips:ring, ring");
  EXPECT_EQ(advice_of(refusal("bml", "torus:18,2")), "blueconnect, blueconnect:ring, hips:ring");
  EXPECT_EQ(advice_of(refusal("two-level", "torus:7,3")),
            "blueconnect, blueconnect:ring, hips:mesh, hips:ring, hips:root")
      << "343 servers, 9 hops";
  EXPECT_EQ(advice_of(refusal("bml", "torus:3,6")),
            "blueconnect, blueconnect:ring, hips:mesh, hips:ring, hips:root")
      << "729 servers, 6 hops";
  EXPECT_EQ(advice_of(refusal("hips:mesh", "torus:18,2")),
            "blueconnect, blueconnect:ring, hips:ring");
  EXPECT_EQ(advice_of(refusal("halving_doubling", "torus:3,6")),
            "blueconnect, blueconnect:ring, hips:mesh, hips:ring, hips:root");
  for (const char* spec : {"torus:18,1", "torus:18,2", "torus:3,6"}) {
    EXPECT_NO_THROW(plan_of("hips:ring", spec)) << spec;
    EXPECT_NO_THROW(plan_of("blueconnect", spec)) << spec;
  }
  EXPECT_NO_THROW(plan_of("hips:mesh", "torus:3,6"));
  EXPECT_NE(refusal("ring", "torus:3,6"), "");
}

TEST(TorusPlans, TryNoOtherAlgorithmsOnMoreServersThanTakeMilliseconds) {
  EXPECT_EQ(advice_of(refusal("bml", "torus:32,2")), "blueconnect, blueconnect:ring, hips:ring");
  EXPECT_EQ(advice_of(refusal("bml", "torus:4,7")),
            "`gradcube plan --algorithm NAME` tells of each whether it does");
}

TEST(TorusPlans, RefusePeersThatNoFrameReaches) {
  const char* far =
      "algorithm mesh on topology torus:18,1: [0] sends to [9], 9 hops away, and a frame takes 8 "
      "at most; expected one that runs on these servers: blueconnect, blueconnect:ring, hips:ring, "
      "ring";
  EXPECT_EQ(refusal("mesh", "torus:18,1"), far);
  EXPECT_NE(refusal("ps", "torus:18,1").find("9 hops away"), std::string::npos);
  EXPECT_NE(refusal("hips:mesh", "torus:18,1").find("9 hops away"), std::string::npos);
  const Topology long_ring = parse_topology("torus:18,1", "test");
  const Placement opposite = Placement::of(long_ring, std::vector<ServerId>{0, 9}, "test");
  const std::string why =
      message_of<UsageError>([&] { make_plan("hips:ring", long_ring, opposite, "test"); });
  EXPECT_NE(why.find("9 hops away"), std::string::npos);
  EXPECT_NO_THROW(plan_of("mesh", "torus:17,1"));
  EXPECT_NO_THROW(plan_of("hips:ring", "torus:256,2"));
  for (const char* algorithm : {"hips:ring", "ring", "blueconnect"}) {
    EXPECT_NO_THROW(verify(plan_of(algorithm, "torus:18,1"))) << algorithm;
  }
}

}  // namespace
}  // namespace gradcube::control
