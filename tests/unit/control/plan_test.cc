#include "control/plan/plan.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <stdexcept>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/bml_pieces.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

constexpr uint64_t kSizes[] = {0,   1,    4,    63,   64,   65,     127,    640,
                               641, 1000, 4096, 9999, 6400, 115200, 123456, 12500000};

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

TEST(Plan, DividesEveryBufferIntoPiecesWithoutGapOrOverlap) {
  for (const Topology& topology : small_topologies(81)) {
    const Plan plan = make_plan("bml", topology, "test");
    for (const uint64_t bytes : kSizes) {
      SCOPED_TRACE(topology.spec() + " " + std::to_string(bytes));
      std::vector<ByteRange> ranges;
      for (unsigned t = 0; t < plan.threads(); ++t) {
        const ByteRange share = plan.thread_range(t, bytes);
        for (ServerId s = 0; s < plan.servers(); ++s) {
          const ByteRange range = plan.piece_range({t, s}, bytes);
          ASSERT_LE(range.begin, range.end);
          ASSERT_GE(range.begin, share.begin);
          ASSERT_LE(range.end, share.end);
          ASSERT_TRUE(range.begin % kUnitBytes == 0 || range.begin == bytes);
          ASSERT_TRUE(range.end % kUnitBytes == 0 || range.end == bytes);
          ranges.push_back(range);
        }
      }
      std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) {
        return a.begin != b.begin ? a.begin < b.begin : a.end < b.end;
      });
      uint64_t at = 0;
      for (const ByteRange& range : ranges) {
        ASSERT_EQ(range.begin, at);
        at = range.end;
      }
      ASSERT_EQ(at, bytes);
    }
  }
}

// Sub-range [U*i/n, U*(i+1)/n) of each level, as the layout is written down.
TEST(Plan, DividesARangeByDigitsInTheOrderOfTheSteps) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const uint64_t bytes = 100 * kUnitBytes;
  EXPECT_EQ(plan.thread_range(0, bytes), (ByteRange{0, 50 * kUnitBytes}));
  EXPECT_EQ(plan.thread_range(1, bytes), (ByteRange{50 * kUnitBytes, bytes}));
  // Thread 0: digit at level 0 first: 50 units are 16, 17, 17; then 17 units are 5, 6, 6.
  const ServerId server = plan.space().parse("2,1");
  EXPECT_EQ(plan.step_range(0, server, 1, bytes), (ByteRange{16 * kUnitBytes, 33 * kUnitBytes}));
  EXPECT_EQ(plan.step_range(0, server, 2, bytes), (ByteRange{27 * kUnitBytes, 33 * kUnitBytes}));
  // Thread 1: digit at level 1 first.
  EXPECT_EQ(plan.step_range(1, server, 1, bytes), (ByteRange{83 * kUnitBytes, 100 * kUnitBytes}));
}

TEST(Plan, KeepsAnActiveRangeThatIsTheUnionOfItsPieces) {
  for (const Topology& topology : small_topologies(27)) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("bml", topology, "test");
    const uint64_t bytes = 12345;
    for (unsigned t = 0; t < plan.threads(); ++t) {
      for (ServerId s = 0; s < plan.servers(); ++s) {
        EXPECT_EQ(plan.step_range(t, s, 0, bytes), plan.thread_range(t, bytes));
        EXPECT_EQ(plan.step_range(t, s, plan.steps(), bytes), plan.piece_range({t, s}, bytes));
        for (unsigned w = 0; w < plan.steps(); ++w) {
          uint64_t size = 0;
          const ByteRange range = plan.step_range(t, s, w + 1, bytes);
          plan.piece_set(s, t, w).for_each(plan.space(), [&](PieceId piece) {
            const ByteRange part = plan.piece_range(piece, bytes);
            EXPECT_GE(part.begin, range.begin);
            EXPECT_LE(part.end, range.end);
            size += part.size();
          });
          EXPECT_EQ(size, range.size());
        }
      }
    }
  }
}

TEST(Plan, SurvivesTheLargestBuffers) {
  const Plan plan = make_plan("bml", parse_topology("bcube:16,4", "test"), "test");
  const uint64_t bytes = UINT64_MAX;
  EXPECT_EQ(plan.thread_range(3, bytes).end, bytes);
  EXPECT_EQ(plan.piece_range({3, 65535}, bytes).end, bytes);
  for (ServerId s = 0; s + 1 < 65536; s += 4095) {
    const ByteRange range = plan.piece_range({2, s}, bytes);
    EXPECT_LT(range.begin, range.end);
    EXPECT_NEAR(static_cast<double>(range.size()), 0x1p46, 128.0);
  }
}

TEST(Plan, StreamsEachPieceOfAStepOnceAndFindsItsPlaceAgain) {
  for (const Topology& topology : small_topologies(81)) {
    SCOPED_TRACE(topology.spec());
    const Plan plan = make_plan("bml", topology, "test");
    for (unsigned t = 0; t < plan.threads(); ++t) {
      for (unsigned w = 0; w < plan.steps(); ++w) {
        for (ServerId receiver = 0; receiver < plan.servers(); ++receiver) {
          const PieceSet expected = plan.piece_set(receiver, t, w);
          ASSERT_EQ(plan.stream_pieces(t, w), expected.count(plan.space()));
          std::set<ServerId> owners;
          for (uint32_t i = 0; i < plan.stream_pieces(t, w); ++i) {
            const ServerId owner = plan.stream_piece_owner(t, w, receiver, i);
            ASSERT_TRUE(expected.contains(plan.space(), {t, owner}));
            ASSERT_EQ(plan.stream_index(t, w, receiver, owner), i);
            owners.insert(owner);
          }
          ASSERT_EQ(owners.size(), plan.stream_pieces(t, w));
        }
      }
    }
  }
}

TEST(Plan, RotatesStreamsByTheReceiversOwnDigits) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,3", "test"), "test");
  const AddressSpace& space = plan.space();
  const ServerId receiver = space.parse("2,1,0");
  // Thread 0, step 0 fixes level 0; step 1's digit (level 1) is the most significant of the index.
  std::vector<std::string> owners;
  for (uint32_t i = 0; i < plan.stream_pieces(0, 0); ++i) {
    owners.push_back(space.suffix(plan.stream_piece_owner(0, 0, receiver, i)));
  }
  EXPECT_EQ(owners, (std::vector<std::string>{"2-1-0", "0-1-0", "1-1-0", "2-2-0", "0-2-0", "1-2-0",
                                              "2-0-0", "0-0-0", "1-0-0"}));
}

TEST(Plan, RefusesThreadsThatDoNotVisitEveryLevelOnce) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  EXPECT_THROW(Plan("x", topology, {}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{{0}}}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{{0}, {0}}}), std::invalid_argument);
  EXPECT_THROW(Plan("x", topology, {{{0}, {2}}}), std::invalid_argument);
  EXPECT_NO_THROW(Plan("x", topology, {{{1}, {0}}}));
}

}  // namespace
}  // namespace gradcube::control
