#include "control/plan/verify.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// All pieces of thread 0 on bcube:3,2.
std::vector<PieceId> all_of_thread_0() {
  std::vector<PieceId> pieces;
  for (ServerId owner = 0; owner < 9; ++owner) pieces.push_back({0, owner});
  return pieces;
}

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
      const Placement placement = Placement::grid(topology, members, "test");
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
std::string mixture_of_patterns(unsigned mixture, unsigned stages) {
  static constexpr const char* kPatterns[] = {"mesh", "ring", "root"};
  std::string name = "hips";
  for (unsigned w = 0; w < stages; ++w, mixture /= 3) {
    name += w == 0 ? ":" : ",";
    name += kPatterns[mixture % 3];
  }
  return name;
}

TEST(Verify, ProvesEveryMixtureOfMeshesRingsAndRoots) {
  for (const char* spec : {"bcube:2,3", "bcube:3,2", "bcube:4,2", "bcube:3,3"}) {
    const Topology topology = parse_topology(spec, "test");
    for (unsigned mixture = 0; mixture < (topology.levels() == 3 ? 27U : 9U); ++mixture) {
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
      const Placement placement = Placement::grid(topology, members, "test");
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
    const Placement placement = Placement::grid(topology, members, "test");
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

// Runs the verifier on bcube(3,2) with the transfers of one (server, thread, stage, step) changed.
template <typename Change>
std::string sabotage(ServerId where, unsigned thread, Stage stage, unsigned step, Change&& change) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const Streams streams(plan, plan.steps());
  return message_of<PlanError>([&] {
    verify(plan, [&](ServerId server, unsigned t, Stage s, unsigned w) {
      std::vector<Transfer> transfers = streams.transfers(server, t, s, w);
      if (server == where && t == thread && s == stage && w == step) change(transfers);
      return transfers;
    });
  });
}

TEST(Verify, FindsAMissingExchange) {
  EXPECT_EQ(
      sabotage(0, 0, Stage::aggregation, 0, [](auto& e) { e.pop_back(); }),
      "aggregation step 0, thread 0: [0,0] and [0,2] do not agree on what passes between them");
}

TEST(Verify, FindsAPeerThatIsNoNeighbour) {
  EXPECT_EQ(
      sabotage(0, 0, Stage::aggregation, 0, [](auto& e) { e[0].peer = 4; }),
      "aggregation step 0, thread 0: [0,0] exchanges with [1,1], which is not its peer in this "
      "step");
  EXPECT_NE(sabotage(0, 0, Stage::aggregation, 0, [](auto& e) { e[0].peer = 9; }), "");
  EXPECT_NE(sabotage(0, 0, Stage::aggregation, 0, [](auto& e) { e[0].peer = 0; }), "");
}

TEST(Verify, FindsAnExchangeNamedTwice) {
  EXPECT_NE(sabotage(3, 1, Stage::broadcast, 1, [](auto& e) { e.push_back(e[0]); }).find("twice"),
            std::string::npos);
}

TEST(Verify, FindsThatTheTwoEndsDisagree) {
  EXPECT_NE(sabotage(5, 1, Stage::aggregation, 1, [](auto& e) { e[0].send[0].owner ^= 1; }), "");
  EXPECT_NE(sabotage(5, 1, Stage::aggregation, 1, [](auto& e) { e[0].receive[0].owner ^= 1; }), "");
}

// All servers alike do something wrong, so that the two ends agree and only the outcome shows it.
template <typename Change>
std::string sabotage_everywhere(Stage stage, unsigned step, Change&& change) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const Streams streams(plan, plan.steps());
  return message_of<PlanError>([&] {
    verify(plan, [&](ServerId server, unsigned t, Stage s, unsigned w) {
      std::vector<Transfer> transfers = streams.transfers(server, t, s, w);
      if (t == 0 && s == stage && w == step) change(transfers);
      return transfers;
    });
  });
}

TEST(Verify, CountsTheLinksOfAFlatRing) {
  const VerifyReport report =
      verify(make_plan("ring", parse_topology("bcube:3,2", "test"), "test"));
  EXPECT_EQ(report.transfers, 2u * 9 * 8);
  EXPECT_EQ(report.link_pieces, (std::vector<uint64_t>{16, 16}));
}

TEST(Verify, FindsARingThatSendsWhatHasNotComeYet) {
  const Plan plan = make_plan("hips:ring", parse_topology("star:4", "test"), "test");
  const Streams streams(plan, plan.steps());
  const auto message = message_of<PlanError>([&] {
    verify(plan, [&](Rank rank, unsigned t, Stage s, unsigned w) {
      std::vector<Transfer> transfers = streams.transfers(rank, t, s, w);
      if (s == Stage::broadcast) {
        std::swap(transfers[0].round, transfers[1].round);
      }
      return transfers;
    });
  });
  EXPECT_NE(message.find("before it is complete"), std::string::npos) << message;
}

TEST(Verify, FindsARingWhoseNeighboursDisagree) {
  const Plan plan = make_plan("hips:ring", parse_topology("star:4", "test"), "test");
  const Streams streams(plan, plan.steps());
  EXPECT_EQ(message_of<PlanError>([&] {
              verify(plan, [&](Rank rank, unsigned t, Stage s, unsigned w) {
                std::vector<Transfer> transfers = streams.transfers(rank, t, s, w);
                if (rank == 2 && s == Stage::aggregation) transfers[1].source = 3;
                return transfers;
              });
            }),
            "aggregation step 0, thread 0: [1] and [2] do not agree on what passes between them");
}

TEST(Verify, FindsThatTheTwoEndsExpectAnotherOrder) {
  EXPECT_NE(sabotage(5, 1, Stage::aggregation, 0,
                     [](auto& e) { std::reverse(e[0].send.begin(), e[0].send.end()); }),
            "");
}

TEST(Verify, FindsAPieceThatDoesNotExist) {
  EXPECT_EQ(sabotage_everywhere(Stage::aggregation, 0,
                                [](auto& e) {
                                  for (Transfer& x : e) x.send = x.receive = {{0, 9}};
                                }),
            "a transfer names a piece that does not exist");
}

TEST(Verify, FindsALostContribution) {
  EXPECT_EQ(sabotage_everywhere(Stage::aggregation, 0, [](auto& e) { e.clear(); }),
            "after the aggregation stage, [0,0] has the contribution of [0,1] in piece <0,0,0> 0 "
            "times, not once");
}

TEST(Verify, FindsAContributionAddedTwice) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const Streams streams(plan, plan.steps());
  // Thread 1 carries thread 0's pieces over level 1 at step 0; thread 0 does so again at step 1.
  EXPECT_EQ(message_of<PlanError>([&] {
              verify(plan, [&](ServerId server, unsigned t, Stage s, unsigned w) {
                std::vector<Transfer> transfers = streams.transfers(server, t, s, w);
                if (t == 1 && s == Stage::aggregation && w == 0) {
                  for (Transfer& e : transfers) e.send = e.receive = all_of_thread_0();
                }
                return transfers;
              });
            }),
            "after the aggregation stage, [0,0] has the contribution of [0,0] in piece <0,0,0> 3 "
            "times, not once");
}

TEST(Verify, FindsALinkThatCarriesMoreThanItsShare) {
  // Right sums, but everything is sent where one piece would do.
  EXPECT_EQ(sabotage_everywhere(Stage::aggregation, 1,
                                [](auto& e) {
                                  for (Transfer& x : e) x.send = x.receive = all_of_thread_0();
                                }),
            "[0,0]'s port 1 carries 32 pieces, more than its share of 16");
}

TEST(Verify, FindsAnIncompletePieceThatIsBroadcast) {
  EXPECT_NE(sabotage_everywhere(Stage::broadcast, 0,
                                [](auto& e) {
                                  for (Transfer& x : e) x.send = x.receive = all_of_thread_0();
                                })
                .find("before it is complete"),
            std::string::npos);
}

TEST(Verify, FindsAServerThatNeverGetsAResult) {
  EXPECT_NE(sabotage_everywhere(Stage::broadcast, 1, [](auto& e) { e.clear(); })
                .find("after the broadcast stage"),
            std::string::npos);
}

}  // namespace
}  // namespace gradcube::control
