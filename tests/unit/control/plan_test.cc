#include "control/plan/plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/bml_pieces.h"
#include "tests/unit/control/stream_order.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr uint64_t kSizes[] = {0,   1,    4,    63,   64,   65,     127,    640,
                               641, 1000, 4096, 9999, 6400, 115200, 123456, UINT64_MAX};

std::vector<PieceId> members(const Plan& plan, const PieceSet& set) {
  std::vector<PieceId> all;
  set.for_each(plan.space(), [&](PieceId piece) { all.push_back(piece); });
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
            EXPECT_EQ(members(plan, e.send), calc_gset(space, e.peer, w, t, all));
            EXPECT_EQ(members(plan, e.receive), calc_gset(space, a, w, t, all));
          }
          for (const Exchange& e : plan.exchanges(a, t, Stage::broadcast, w)) {
            EXPECT_EQ(members(plan, e.send), calc_gset(space, a, k - 1 - w, t, all));
            EXPECT_EQ(members(plan, e.receive), calc_gset(space, e.peer, k - 1 - w, t, all));
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
    return space.text(e.peer) + " send " + e.send.text(space) + " receive " + e.receive.text(space);
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
    for (const uint64_t bytes : kSizes) {
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
          ASSERT_EQ(members(plan, plan.piece_set(server, t, w)), pieces);
        }
      }
    }
  }
}

TEST(Plan, RefusesThreadsThatDoNotVisitEveryLevelOnce) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  EXPECT_THROW(Plan("x", topology, {}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{0}}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{0, 0}}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{0, 2}}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{0, 1, 2}}), std::invalid_argument);
  EXPECT_NO_THROW(Plan("x", topology, {{1, 0}}));
}

}  // namespace
}  // namespace gradcube::control
