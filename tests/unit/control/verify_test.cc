#include "control/plan/verify.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

TEST(Verify, ProvesBmlOnEverySmallBCube) {
  for (const Topology& topology : small_cubes(81)) {
    SCOPED_TRACE(topology.spec());
    const VerifyReport report = verify(make_plan("bml", topology, "test"));
    EXPECT_EQ(report.pieces, topology.levels() * topology.servers());
    for (const uint64_t pieces : report.link_pieces) {
      EXPECT_EQ(pieces, 2 * (uint64_t{topology.servers()} - 1));
    }
    // The paper's bound is met exactly when every link of every server carries its share.
    EXPECT_EQ(report.transfers,
              uint64_t{topology.servers()} * topology.levels() * 2 * (topology.servers() - 1));
  }
}

// Every pair exchanges a piece in each stage, and a link carries what crosses it.
TEST(Verify, ProvesMeshOnEverySmallTopology) {
  for (const Topology& topology : small_topologies(81)) {
    SCOPED_TRACE(topology.spec());
    const std::uint64_t servers = topology.servers();
    const VerifyReport report = verify(make_plan("mesh", topology, "test"));
    EXPECT_EQ(report.transfers, 2 * servers * (servers - 1));
    for (unsigned level = 0; level < topology.levels(); ++level) {
      const std::uint64_t alike = servers / topology.space().radix(level);
      EXPECT_EQ(report.link_pieces[level], 2 * (servers - alike));
    }
  }
}

TEST(Verify, ProvesEveryAlgorithmOnEverySmallTopology) {
  for (const Topology& topology : small_topologies(81)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      EXPECT_EQ(verify(plan).ranks, topology.servers());
    }
  }
}

TEST(Verify, ProvesEveryAlgorithmOnEveryGridOfServersThatItFits) {
  for (const Topology& topology :
       {parse_topology("bcube:4,2", "test"), parse_topology("bcube:2x3x2", "test")}) {
    for (const std::vector<ServerId>& members : all_grids(topology)) {
      const Placement placement = Placement::of(topology, members, "test");
      for (const Plan& plan : fitting_plans(topology, placement)) {
        SCOPED_TRACE(plan.algorithm());
        ASSERT_EQ(verify(plan).ranks, members.size());
      }
    }
  }
}

// A rank sends half of what it has at each step.
TEST(Verify, CountsThePiecesOfHalvingAndDoubling) {
  const VerifyReport report =
      verify(make_plan("halving_doubling", parse_topology("bcube:4,2", "test"), "test"));
  EXPECT_EQ(report.pieces, 16u);
  EXPECT_EQ(report.transfers, 2u * 16 * 15);
  EXPECT_EQ(report.link_pieces, (std::vector<uint64_t>{2 * 3, 2 * 12}));
}

// Of hips:mesh,ring,root and so on, by a number for each.
constexpr const char* kPatternNames[] = {"mesh", "ring", "root", "2xroot"};
std::string mixture_of_patterns(unsigned mixture, unsigned stages) {
  std::string name = "hips";
  for (unsigned w = 0; w < stages; ++w, mixture /= std::size(kPatternNames)) {
    name += w == 0 ? ":" : ",";
    name += kPatternNames[mixture % std::size(kPatternNames)];
  }
  return name;
}

TEST(Verify, ProvesEveryMixtureOfMeshesRingsAndRoots) {
  for (const char* spec : {"bcube:2,3", "bcube:3,2", "bcube:4,2", "bcube:3,3"}) {
    const Topology topology = parse_topology(spec, "test");
    for (unsigned mixture = 0; mixture < (topology.levels() == 3 ? 63U : 16U); ++mixture) {
      const std::string name = mixture_of_patterns(mixture, topology.levels());
      SCOPED_TRACE(name + " on " + spec);
      const Plan plan = make_plan(name, topology, "test");
      const VerifyReport report = verify(plan);
      if (plan.has_root_step()) continue;
      // A link carries as much in a ring as in a mesh.
      EXPECT_EQ(report.link_pieces,
                std::vector<uint64_t>(topology.levels(), 2 * (uint64_t{topology.servers()} - 1)));
    }
  }
}

TEST(Verify, ProvesAPlanOfOneThreadToo) {
  const Plan plan = plan_over_levels(parse_topology("bcube:3,3", "test"), {{2, 0, 1}});
  const VerifyReport report = verify(plan);
  EXPECT_EQ(report.link_pieces, (std::vector<uint64_t>{12, 4, 36}));
}

TEST(Verify, ProvesBmlOnEveryGridOfServers) {
  for (const Topology& topology :
       {parse_topology("bcube:3,2", "test"), parse_topology("bcube:2,4", "test"),
        parse_topology("bcube:3x4x2", "test")}) {
    for (const std::vector<ServerId>& members : all_grids(topology)) {
      if (members.size() < 2) continue;
      const Placement placement = Placement::of(topology, members, "test");
      const VerifyReport report = verify(make_plan("bml", topology, placement, "test"));
      const std::uint64_t ranks = members.size();
      ASSERT_EQ(report.ranks, ranks);
      ASSERT_EQ(report.transfers, ranks * placement.dimensions().size() * 2 * (ranks - 1));
    }
  }
}

TEST(Verify, MeetsThePapersBoundOnARowAColumnAndASquare) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const auto link_pieces = [&](const std::vector<ServerId>& members) {
    const Placement placement = Placement::of(topology, members, "test");
    return verify(make_plan("bml", topology, placement, "test")).link_pieces;
  };
  EXPECT_EQ(link_pieces({3, 4, 5}), (std::vector<uint64_t>{4, 0}));
  EXPECT_EQ(link_pieces({1, 4, 7}), (std::vector<uint64_t>{0, 4}));
  EXPECT_EQ(link_pieces({0, 2, 6, 8}), (std::vector<uint64_t>{6, 6}));
}

TEST(Verify, ProvesThreadsOfUnequalWeightAndOfDifferentSteps) {
  const Topology topology = parse_topology("bcube:4,2", "test");
  const Plan plan("mixed", topology, Placement::all(topology),
                  {{1, {{4, 1}, {4, 4}}}, {3, {{2, 8}, {2, 4}, {2, 1}, {2, 2}}}}, LinkUse::shared);
  EXPECT_NO_THROW(verify(plan));
}

// Halving and doubling: a digit of radix 4 as two of radix 2.
TEST(Verify, ProvesAMeshOverFactorsOfADigit) {
  const Topology topology = parse_topology("bcube:4,2", "test");
  const Plan plan("halving", topology, Placement::all(topology),
                  {{1, {{2, 1}, {2, 2}, {2, 4}, {2, 8}}}, {1, {{2, 4}, {2, 8}, {2, 1}, {2, 2}}}});
  // Of 16 pieces of each thread: 8, 4 on one level and 2, 1 on the other, in both stages.
  EXPECT_EQ(verify(plan).link_pieces, (std::vector<uint64_t>{30, 30}));
}

TEST(Verify, CountsTheHopsOfPeersThatAreNoNeighbours) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Plan plan("flat", topology, Placement::all(topology), {{1, {{9, 1}}}}, LinkUse::shared);
  // One piece for each of 8 peers, of which 6 differ in a given digit; in both stages.
  const VerifyReport report = verify(plan);
  EXPECT_EQ(report.link_pieces, (std::vector<uint64_t>{12, 12}));
  EXPECT_EQ(report.transfers, 2u * 9 * 8);
}

TEST(Verify, LetsTransfersShareALinkWhereThePlanDoesNotPromiseOtherwise) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const PlanThread thread{1, {{3, 1}, {3, 3}}};
  const Plan plan("share", topology, Placement::all(topology), {thread, thread}, LinkUse::shared);
  EXPECT_EQ(verify(plan).link_pieces, (std::vector<uint64_t>{24, 8}));
}

// In round 1 thread 1's [0,2] sends to the rank after it, [1,0]: through [0,0], whose link of level
// 1 thread 0 uses.
TEST(Verify, FindsALinkOfARelayThatIsUsedTwice) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Plan plan("relay", topology, Placement::all(topology),
                  {{1, {{3, 3}, {3, 1}}}, {1, {{9, 1}}}});
  EXPECT_EQ(message_of<PlanError>([&] { verify(plan); }),
            "aggregation step 0, thread 1: [0,0]'s port 1 is already used by thread 0");
}

TEST(Verify, FindsTwoThreadsOnOneLink) {
  const Plan plan = plan_over_levels(parse_topology("bcube:3,2", "test"), {{0, 1}, {0, 1}});
  EXPECT_EQ(message_of<PlanError>([&] { verify(plan); }),
            "aggregation step 0, thread 1: [0,0]'s port 0 is already used by thread 0");
}

TEST(Verify, CountsTheLinksOfAFlatRing) {
  const VerifyReport report =
      verify(make_plan("ring", parse_topology("bcube:3,2", "test"), "test"));
  EXPECT_EQ(report.transfers, 2u * 9 * 8);
  EXPECT_EQ(report.link_pieces, (std::vector<uint64_t>{16, 16}));
}

// What is found when one rank's transfers in a step of the aggregation stage are changed.
template <typename Change>
std::string found(const Plan& plan, Rank where, unsigned thread, unsigned step, Change&& change) {
  const TransferFunction sabotaged = [&](const Streams& streams, Rank rank, unsigned t, Stage s,
                                         unsigned w) {
    std::vector<Transfer> transfers = streams.transfers(rank, t, s, w);
    if (rank == where && t == thread && s == Stage::aggregation && w == step) change(transfers);
    return transfers;
  };
  return message_of<PlanError>([&] { verify(plan, sabotaged, exchanges_of(plan)); });
}

TEST(Verify, FindsThatTheTwoEndsDisagree) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const char* message =
      "aggregation step 1, thread 1: [1,2] does not agree with [1,0] and [1,0] on what passes "
      "between them";
  EXPECT_EQ(found(plan, 5, 1, 1, [](auto& t) { t[0].send[0].owner ^= 1; }), message);
  EXPECT_EQ(found(plan, 5, 1, 1, [](auto& t) { t[0].receive[0].owner ^= 1; }), message);
}

TEST(Verify, FindsThatTheTwoEndsExpectAnotherOrder) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const char* message =
      "aggregation step 0, thread 1: [1,2] does not agree with [2,2] and [2,2] on what passes "
      "between them";
  EXPECT_EQ(found(plan, 5, 1, 0, [](auto& t) { std::reverse(t[0].send.begin(), t[0].send.end()); }),
            message);
  EXPECT_EQ(
      found(plan, 5, 1, 0, [](auto& t) { std::reverse(t[0].receive.begin(), t[0].receive.end()); }),
      message);
}

TEST(Verify, FindsARingWhoseNeighboursDisagree) {
  const Plan plan = plan_of("hips:ring", "star:4");
  EXPECT_EQ(found(plan, 2, 0, 0, [](auto& t) { t[1].source = 3; }),
            "aggregation step 0, thread 0: [2] does not agree with [3] and [3] on what passes "
            "between them");
  EXPECT_EQ(found(plan, 2, 0, 0, [](auto& t) { std::swap(t[0].round, t[1].round); }),
            "aggregation step 0, thread 0: [2] does not agree with [3] and [1] on what passes "
            "between them");
}

// Right sums, but all ranks send everything of thread 0 where one piece would do: 2 peers get 9
// pieces, not 1, from each of 9.
TEST(Verify, FindsALinkThatCarriesMoreThanItsShare) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const ExchangeFunction sabotaged = [&plan](Rank rank, unsigned t, Stage s, unsigned w) {
    std::vector<Exchange> exchanges = plan.exchanges(rank, t, s, w);
    if (t != 0 || s != Stage::aggregation || w != 1) return exchanges;
    for (Exchange& exchange : exchanges) {
      for (PieceSet::Digit& digit : exchange.send.digits) digit.value = PieceSet::kAnyDigit;
    }
    return exchanges;
  };
  EXPECT_EQ(message_of<PlanError>([&] { verify(plan, &Streams::transfers, sabotaged); }),
            "432 transfers of pieces, where 288 bring each contribution to its owner and each "
            "result to all");
}

}  // namespace
}  // namespace gradcube::control
