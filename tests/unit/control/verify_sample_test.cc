#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/verify.h"
#include "tests/unit/control/counted_memory.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/plans.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr std::uint64_t kSeed = 7;
using LinkPieces = std::vector<std::uint64_t>;

// What is found when each rank's exchanges in one step of thread 0 are changed.
template <typename Change>
std::string found(const Plan& plan, Stage stage, unsigned step, Change&& change) {
  const ExchangeFunction sabotaged = [&](Rank rank, unsigned t, Stage s, unsigned w) {
    std::vector<Exchange> exchanges = plan.exchanges(rank, t, s, w);
    if (t == 0 && s == stage && w == step) change(rank, exchanges);
    return exchanges;
  };
  return message_of<PlanError>([&] { follow_piece(plan, {0, 0}, sabotaged); });
}

// A rank's own ports carry as much as all ranks send through them.
TEST(VerifySample, FindsOfEachRankWhatTheWholeProofFinds) {
  for (const Topology& topology : small_topologies(16)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      LinkPieces most;
      for (Rank rank = 0; rank < plan.ranks() && plan.ranks() > 1; ++rank) {
        const LinkPieces of_rank = verify(plan, {{rank}, {}}).link_pieces;
        most.resize(of_rank.size());
        for (std::size_t i = 0; i < most.size(); ++i) most[i] = std::max(most[i], of_rank[i]);
      }
      if (!most.empty()) {
        EXPECT_EQ(most, verify(plan).link_pieces);
      }
    }
  }
}

TEST(VerifySample, ProvesPiecesAndServersOfBCubeWith65536Servers) {
  const Plan bml = plan_of("bml", "bcube:16,4");
  // A piece crosses a link in each stage once for every other server (BML, section 3.2).
  EXPECT_EQ(verify(bml, draw_sample(bml, kSeed, 1)).link_pieces, LinkPieces(4, 2 * 65535));
  for (const char* algorithm :
       {"hips:ring", "hips:mesh,ring,root,mesh", "blueconnect", "halving_doubling", "hips:root",
        "recursive_doubling", "two-level"}) {
    SCOPED_TRACE(algorithm);
    const Plan plan = plan_of(algorithm, "bcube:16,4");
    for (const PieceId piece : draw_sample(plan, kSeed, 2).pieces) {
      EXPECT_NO_THROW(follow_piece(plan, piece, exchanges_of(plan)));
    }
  }
}

// A server's part is its steps: nothing is kept for each of the others, nor for a ring's rounds.
TEST(VerifySample, KeepsNothingPerServerInThePlanOf65536) {
  for (const char* algorithm : {"bml", "hips:ring", "blueconnect"}) {
    SCOPED_TRACE(algorithm);
    const Topology topology = parse_topology("bcube:16,4", "test");
    const std::uint64_t before = bytes_asked_for();
    const Plan plan = make_plan(algorithm, topology, "test");
    const std::uint64_t after = bytes_asked_for();
    EXPECT_LT(after - before, 16384u);
    std::size_t entries = 0;
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      for (unsigned step = 0; step < plan.steps(thread); ++step) {
        entries += plan.exchanges(4711, thread, Stage::aggregation, step).size();
      }
    }
    EXPECT_LE(entries, plan.threads() * 4 * 15u);
  }
}

TEST(VerifySample, DrawsTheSameForTheSameSeed) {
  const Plan plan = plan_of("hips:root", "bcube:16,4");
  const Sample one = draw_sample(plan, 1, 4);
  EXPECT_EQ(one.ranks, draw_sample(plan, 1, 4).ranks);
  EXPECT_EQ(one.pieces, draw_sample(plan, 1, 4).pieces);
  EXPECT_NE(one.ranks, draw_sample(plan, 2, 4).ranks);
  for (const PieceId piece : one.pieces) EXPECT_EQ(piece.owner, 0u) << "all roots are [0,0,0,0]";
}

TEST(VerifySample, FindsAContributionThatNeverArrives) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  EXPECT_EQ(
      found(plan, Stage::aggregation, 0,
            [](Rank rank, auto& e) {
              if (rank == 3) e.pop_back();
            }),
      "piece <0,0,0>: the aggregation stage brings its owner the contribution of [1,2] never");
}

TEST(VerifySample, FindsAContributionThatArrivesTwice) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  EXPECT_EQ(found(plan, Stage::aggregation, 1,
                  [](Rank rank, auto& e) {
                    if (rank == 0) e.push_back(e.front());
                  }),
            "piece <0,0,0>: the aggregation stage brings its owner the contribution of [1,0] more "
            "than once");
}

// Piece 0 of a ring of 4 goes from [1] to [2] in round 0, and from there on in round 1.
TEST(VerifySample, FindsASumThatComesNoSoonerThanItIsPassedOn) {
  const Plan plan = plan_of("hips:ring", "star:4");
  for (const unsigned round : {1U, 2U}) {
    EXPECT_EQ(found(plan, Stage::aggregation, 0,
                    [round](Rank rank, auto& e) {
                      if (rank == 2) e[0].round = round;
                    }),
              "piece <0,0>: the aggregation stage brings its owner the contribution of [1] never");
  }
}

TEST(VerifySample, FindsAServerThatNeverGetsAResult) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  EXPECT_EQ(found(plan, Stage::broadcast, 1,
                  [](Rank rank, auto& e) {
                    if (rank == 6) e.clear();
                  }),
            "piece <0,0,0>: the broadcast stage brings the result to [2,1] never");
}

TEST(VerifySample, FindsTwoThreadsOnOneLink) {
  const Plan plan = plan_over_levels(parse_topology("bcube:3,2", "test"), {{0, 1}, {0, 1}});
  EXPECT_EQ(message_of<PlanError>([&] { count_links(plan, {4}, exchanges_of(plan)); }),
            "aggregation step 0, thread 1: [1,1]'s port 0 is already used by thread 0");
}

// In round 2 [0,0] gets from [0,1], and in round 1 from [0,2].
TEST(VerifySample, FindsTwoTransfersThatArriveOverOneLinkInARound) {
  const Plan plan = plan_of("bml", "bcube:3,2");
  const ExchangeFunction sabotaged = [&plan](Rank rank, unsigned t, Stage s, unsigned w) {
    std::vector<Exchange> exchanges = plan.exchanges(rank, t, s, w);
    if (t == 0 && s == Stage::aggregation && w == 0) exchanges[0].source = exchanges[1].source;
    return exchanges;
  };
  EXPECT_EQ(message_of<PlanError>([&] { count_links(plan, {0}, sabotaged); }),
            "aggregation step 0, thread 0: [0,0]'s port 0 is already used by thread 0");
}

TEST(VerifySample, DoesNotCountLinksWhereServersRelay) {
  const Plan plan = plan_of("mesh", "bcube:3,2");
  EXPECT_EQ(verify(plan, draw_sample(plan, kSeed, 3)).link_pieces, LinkPieces());
}

}  // namespace
}  // namespace gradcube::control
