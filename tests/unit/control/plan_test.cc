#include "control/plan/base/plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "tests/unit/control/bml_pieces.h"
#include "tests/unit/control/counted_memory.h"
#include "tests/unit/control/message.h"
#include "tests/unit/control/stream_order.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr uint64_t kBufferSizes[] = {0,   1,    4,    63,   64,   65,     127,    640,
                                     641, 1000, 4096, 9999, 6400, 115200, 123456, UINT64_MAX};

std::vector<PieceId> members(const PieceSet& set) {
  std::vector<PieceId> all;
  set.for_each([&](PieceId piece) { all.push_back(piece); });
  return all;
}

// Every exchange of the plan is what Algorithm 1 transmits and receives.
TEST(BmlPlan, ExchangesWhatThePapersCalcGsetSaysOnAllSmallTopologies) {
  for (const Topology& topology : small_topologies(32)) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("bml", topology, "test");
    const AddressSpace& space = plan.space();
    const unsigned k = plan.steps();
    const std::vector<PieceId> all = full_gradient_set(space);
    for (ServerId a = 0; a < plan.servers(); ++a) {
      for (unsigned t = 0; t < plan.threads(); ++t) {
        for (unsigned w = 0; w < k; ++w) {
          for (const Exchange& e : plan.exchanges(a, t, Stage::aggregation, w)) {
            EXPECT_EQ(members(e.send), calc_gset(space, e.peer, w, t, all));
            EXPECT_EQ(members(e.receive), calc_gset(space, a, w, t, all));
          }
          for (const Exchange& e : plan.exchanges(a, t, Stage::broadcast, w)) {
            EXPECT_EQ(members(e.send), calc_gset(space, a, k - 1 - w, t, all));
            EXPECT_EQ(members(e.receive), calc_gset(space, e.peer, k - 1 - w, t, all));
          }
        }
      }
    }
  }
}

TEST(BmlPlan, UsesTheLevelsThatThePaperSays) {
  const Plan plan = make_plan("bml", parse_topology("bcube:2,4", "test"), "test");
  ASSERT_EQ(plan.threads(), 4u);
  for (unsigned t = 0; t < 4; ++t) {
    for (unsigned w = 0; w < 4; ++w) {
      EXPECT_EQ(plan.level(t, w), (w + t) % 4);
      for (const Exchange& e : plan.exchanges(5, t, Stage::broadcast, w)) {
        EXPECT_EQ(e.peer, plan.space().with_digit(5, (4 - 1 - w + t) % 4,
                                                  plan.space().digit(e.peer, (3 - w + t) % 4)));
      }
    }
  }
}

TEST(BmlPlan, FollowsThePapersExampleOfBCube32) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const AddressSpace& space = plan.space();
  const auto text = [&](const Exchange& e) {
    return space.text(e.peer) + " send " + e.send.text() + " receive " + e.receive.text();
  };
  const auto first = plan.exchanges(0, 0, Stage::aggregation, 0);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_EQ(text(first[0]), "[0,1] send <0,*,1> receive <0,*,0>");
  EXPECT_EQ(text(first[1]), "[0,2] send <0,*,2> receive <0,*,0>");
  const auto second = plan.exchanges(0, 0, Stage::aggregation, 1);
  EXPECT_EQ(text(second[0]), "[1,0] send <0,1,0> receive <0,0,0>");
  EXPECT_EQ(text(second[1]), "[2,0] send <0,2,0> receive <0,0,0>");
  const auto third = plan.exchanges(0, 0, Stage::broadcast, 0);
  EXPECT_EQ(text(third[0]), "[1,0] send <0,0,0> receive <0,1,0>");
  const auto fourth = plan.exchanges(0, 0, Stage::broadcast, 1);
  EXPECT_EQ(text(fourth[1]), "[0,2] send <0,*,0> receive <0,*,2>");
}

TEST(Plan, GivesEachThreadAShareOfEveryBufferWithoutGapOrOverlap) {
  for (const Topology& topology : small_topologies(81)) {
    const Plan plan = make_plan("bml", topology, "test");
    for (const uint64_t bytes : kBufferSizes) {
      SCOPED_TRACE(topology.spec() + " " + std::to_string(bytes));
      uint64_t at = 0;
      for (unsigned t = 0; t < plan.threads(); ++t) {
        const ByteRange share = plan.thread_range(t, bytes);
        ASSERT_EQ(share.begin, at);
        ASSERT_LE(share.begin, share.end);
        ASSERT_TRUE(share.end % kUnitBytes == 0 || share.end == bytes);
        at = share.end;
      }
      ASSERT_EQ(at, bytes);
    }
  }
}

TEST(Plan, NamesAsPieceSetWhatAServerStillHasToAggregate) {
  for (const Topology& topology : small_topologies(32)) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("bml", topology, "test");
    for (unsigned t = 0; t < plan.threads(); ++t) {
      for (unsigned w = 0; w < plan.steps(); ++w) {
        for (ServerId server = 0; server < plan.servers(); ++server) {
          std::vector<PieceId> pieces;
          for (const ServerId owner : stream_owners(plan, t, w, server)) {
            pieces.push_back({t, owner});
          }
          std::sort(pieces.begin(), pieces.end());
          ASSERT_EQ(members(plan.piece_set(server, t, w)), pieces);
        }
      }
    }
  }
}

Plan bml_of(const Topology& topology, const std::vector<ServerId>& members) {
  return make_plan("bml", topology, Placement::of(topology, members, "test"), "test");
}

TEST(BmlPlan, HasAThreadForEachLevelThatIsLeftOnAGrid) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Plan row = bml_of(topology, {3, 4, 5});
  ASSERT_EQ(row.threads(), 1u);
  EXPECT_EQ(row.thread(0).steps, (std::vector<PlanStep>{{3, 1, Pattern::mesh}}));
  EXPECT_EQ(row.level(0, 0), 0u);
  EXPECT_EQ(row.ranks(), 3u);
  EXPECT_EQ(row.servers(), 9u);
  const Plan column = bml_of(topology, {0, 6});
  ASSERT_EQ(column.threads(), 1u);
  EXPECT_EQ(column.thread(0).steps, (std::vector<PlanStep>{{2, 1, Pattern::mesh}}));
  EXPECT_EQ(column.level(0, 0), 1u);
  const Plan square = bml_of(topology, {0, 1, 3, 4});
  ASSERT_EQ(square.threads(), 2u);
  EXPECT_EQ(square.thread(1).steps,
            (std::vector<PlanStep>{{2, 2, Pattern::mesh}, {2, 1, Pattern::mesh}}));
}

TEST(BmlPlan, RefusesASingleServer) {
  EXPECT_EQ(message_of<UsageError>([] { bml_of(parse_topology("bcube:3,2", "test"), {4}); }),
            "algorithm bml: one server alone has nobody to exchange with; expected two servers or "
            "more");
}

TEST(Plan, GivesEachThreadTheShareThatItsWeightSays) {
  const Topology topology = parse_topology("star:4", "test");
  const std::vector<PlanStep> steps = {{4, 1}};
  const Plan plan("weighted", topology, Placement::all(topology), {{1, steps}, {3, steps}});
  EXPECT_EQ(plan.thread_range(0, 6400), (ByteRange{0, 1600}));
  EXPECT_EQ(plan.thread_range(1, 6400), (ByteRange{1600, 6400}));
  // 2 units: a quarter is none.
  EXPECT_EQ(plan.thread_range(0, 100), (ByteRange{0, 0}));
  EXPECT_EQ(plan.thread_range(1, 100), (ByteRange{0, 100}));
  const Plan uneven("weighted", topology, Placement::all(topology),
                    {{5, steps}, {65535, steps}, {1, steps}, {7, steps}});
  for (const uint64_t bytes : kBufferSizes) {
    uint64_t at = 0;
    for (unsigned t = 0; t < uneven.threads(); ++t) {
      const ByteRange share = uneven.thread_range(t, bytes);
      const UnitRange expected = wide_share(uneven, units_of(bytes).count, t);
      ASSERT_EQ(share, bytes_of(expected, bytes)) << bytes;
      ASSERT_EQ(share.begin, at) << bytes;
      at = share.end;
    }
    ASSERT_EQ(at, bytes);
  }
}

TEST(Plan, GivesEqualWeightsExactlyTheSharesOfEqualParts) {
  const Topology topology = parse_topology("star:4", "test");
  const std::vector<PlanStep> steps = {{4, 1}};
  for (const unsigned weight : {1u, 7u, kMaxWeight}) {
    for (const unsigned threads : {1u, 2u, 3u, 7u, kMaxPlanThreads}) {
      const Plan plan("equal", topology, Placement::all(topology),
                      std::vector<PlanThread>(threads, {weight, steps}));
      for (const uint64_t bytes : kBufferSizes) {
        for (unsigned t = 0; t < threads; ++t) {
          ASSERT_EQ(plan.thread_range(t, bytes),
                    bytes_of(part(units_of(bytes), t, threads), bytes));
        }
      }
    }
  }
}

TEST(Plan, RoutesNeighboursOverOneHopAndOthersDigitByDigit) {
  const Topology topology = parse_topology("bcube:3,3", "test");
  const AddressSpace& space = topology.space();
  // The servers [v2,v1,v0] with v2 of 0 and 2, v1 of 1, v0 of 0 and 1: ranks 0..3.
  const Plan plan = bml_of(topology, {space.parse("0,1,0"), space.parse("0,1,1"),
                                      space.parse("2,1,0"), space.parse("2,1,1")});
  EXPECT_EQ(plan.route(2, 2).size(), 0u);
  ASSERT_EQ(plan.route(0, 1).size(), 1u);
  EXPECT_EQ(plan.route(0, 1)[0], (Hop{0, 1}));
  ASSERT_EQ(plan.route(1, 3).size(), 1u);
  EXPECT_EQ(plan.route(1, 3)[0], (Hop{2, 2}));
  ASSERT_EQ(plan.route(3, 0).size(), 2u);
  EXPECT_EQ(plan.route(3, 0)[0], (Hop{2, 0}));
  EXPECT_EQ(plan.route(3, 0)[1], (Hop{0, 0}));
}

TEST(Plan, NamesTheLevelOfAStepUnlessItSpansSeveral) {
  const Topology topology = parse_topology("bcube:4,2", "test");
  const Plan plan("factors", topology, Placement::all(topology),
                  {{1, {{2, 1}, {2, 2}, {2, 8}, {2, 4}}}, {1, {{8, 2}, {2, 1}}}});
  EXPECT_EQ(plan.steps(), 4u);
  EXPECT_EQ(plan.steps(1), 2u);
  EXPECT_EQ(plan.level(0, 0), 0u);
  EXPECT_EQ(plan.level(0, 1), 0u);
  EXPECT_EQ(plan.level(0, 2), 1u);
  EXPECT_EQ(plan.level(0, 3), 1u);
  EXPECT_EQ(plan.level(1, 0), std::nullopt);
  EXPECT_EQ(plan.level(1, 1), 0u);
}

TEST(Plan, TakesAsLittleMemoryFor65536ServersAsForAFew) {
  const Topology topology = parse_topology("bcube:16,4", "test");
  const std::uint64_t before = bytes_asked_for();
  const Plan plan = make_plan("bml", topology, "test");
  const std::uint64_t taken = bytes_asked_for() - before;
  EXPECT_EQ(plan.ranks(), 65536u);
  EXPECT_GT(taken, 0u);
  EXPECT_LT(taken, 16384u);
}

std::string threads_refusal(const std::vector<PlanThread>& threads) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  return message_of<std::invalid_argument>(
      [&] { Plan("x", topology, Placement::all(topology), threads); });
}

TEST(Plan, RefusesStepsWhoseDigitsDoNotNumberTheRanks) {
  EXPECT_EQ(threads_refusal({{1, {{3, 3}, {3, 1}}}}), "");
  EXPECT_EQ(threads_refusal({{1, {{9, 1}}}}), "");
  EXPECT_EQ(threads_refusal({{1, {}}}), "thread 0 has 0 steps; expected 1..16");
  EXPECT_EQ(threads_refusal({{1, {{3, 1}, {3, 3}}}, {1, {{3, 1}}}}),
            "the radices of thread 1's steps multiply to 3; expected the number of ranks, 9");
  EXPECT_EQ(threads_refusal({{1, {{3, 1}, {3, 1}}}}),
            "thread 0 has a step of radix 3 and stride 1; expected radices of 2..9 and, by "
            "ascending stride, strides that are the product of the radices before, here 3");
  EXPECT_NE(threads_refusal({{1, {{3, 1}, {3, 6}}}}), "");
  EXPECT_NE(threads_refusal({{1, {{3, 1}, {3, 3}, {1, 9}}}}), "");
  EXPECT_NE(threads_refusal({{1, {{3, 1}, {3, 3}, {3, 9}}}}), "");
  EXPECT_NE(threads_refusal({{1, {{0, 1}}}}), "");
}

TEST(Plan, RefusesAStepOfMoreRanksThanAnOffsetCanName) {
  const Topology topology = parse_topology("bcube:32,2", "test");
  EXPECT_NE(message_of<std::invalid_argument>([&] {
              Plan("x", topology, Placement::all(topology), {{1, {{1024, 1}}}});
            }).find("expected radices of 2..256"),
            std::string::npos);
}

TEST(Plan, RefusesNoThreadTooManyAndWeightsOutOfRange) {
  const PlanThread thread{1, {{9, 1}}};
  EXPECT_EQ(threads_refusal({}), "a plan has 1..128 threads, not 0");
  EXPECT_EQ(threads_refusal(std::vector<PlanThread>(128, thread)), "");
  EXPECT_EQ(threads_refusal(std::vector<PlanThread>(129, thread)),
            "a plan has 1..128 threads, not 129");
  EXPECT_EQ(threads_refusal({thread, {0, {{9, 1}}}}), "thread 1 has weight 0; expected 1..65535");
  EXPECT_EQ(threads_refusal({{65536, {{9, 1}}}}), "thread 0 has weight 65536; expected 1..65535");
}

TEST(Plan, RefusesAPlacementOfAnotherTopology) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const std::vector<PlanThread> threads = {{1, {{9, 1}}}};
  EXPECT_THROW(Plan("x", topology, Placement::all(parse_topology("star:9", "test")), threads),
               std::invalid_argument);
}

TEST(Plan, MayNameEveryPattern) {
  for (const Pattern pattern : kPatterns) {
    EXPECT_EQ(threads_refusal({{1, {{9, 1, pattern}}}}), "");
  }
}

// HiPS, Algorithm 2, as it is written there: the index of the portion that the server with this
// rank sends, and of that which it receives, in step 1, ..., n-1.
struct Portions {
  unsigned sent;
  unsigned received;
};
Portions hips_portions(Stage stage, unsigned rank, unsigned n, unsigned step) {
  const Portions scatter = {(rank + n - step) % n, (rank + n - step - 1) % n};
  // Gather's indices as printed send a portion that has not come yet; a portion goes on a step
  // after it was received.
  return stage == Stage::aggregation ? scatter
                                     : Portions{(rank + n - (step - 1)) % n, (rank + n - step) % n};
}

TEST(Plan, ExchangesOfARingAreThoseOfHips) {
  for (const unsigned n : {3u, 4u, 7u}) {
    const Topology topology = parse_topology("star:" + std::to_string(n), "test");
    const Plan plan = make_plan("hips:ring", topology, "test");
    for (Rank rank = 0; rank < n; ++rank) {
      for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
        const std::vector<Exchange> exchanges = plan.exchanges(rank, 0, stage, 0);
        ASSERT_EQ(exchanges.size(), n - 1);
        for (unsigned step = 1; step < n; ++step) {
          const Exchange& e = exchanges[step - 1];
          const Portions portions = hips_portions(stage, rank, n, step);
          EXPECT_EQ(e.round, step - 1);
          EXPECT_EQ(e.peer, (rank + 1) % n);
          EXPECT_EQ(e.source, (rank + n - 1) % n);
          EXPECT_EQ(e.send, plan.piece_set(portions.sent, 0, 0));
          EXPECT_EQ(e.receive, plan.piece_set(portions.received, 0, 0));
        }
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
