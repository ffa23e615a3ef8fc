#include "control/plan/collective_layout.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <utility>
#include <vector>

#include "control/plan/algorithms.h"
#include "tests/unit/control/stream_order.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

struct Size {
  std::uint64_t bytes;
  std::uint32_t segment;
};
const std::vector<Size> kSizes = {{0, 64},       {1, 64},        {63, 128},
                                  {64, 64},      {65, 64},       {4099, 64},
                                  {12'345, 256}, {99'999, 1408}, {1'000'000, 8896}};

CollectiveLayout layout_of(const ThreadSchedule& schedule, Size size) {
  return CollectiveLayout(schedule, {.bytes = size.bytes}, size.segment, {});
}

std::uint32_t positions(const CollectiveLayout& layout, unsigned w) {
  return layout.round_length(w);
}

// The blocks of all streams of one thread of one server, against the layout of docs/bml.md.
void expect_the_plans_bytes(const Plan& plan, ServerId server, unsigned thread, Size size) {
  const ThreadSchedule schedule(plan, server, thread);
  const CollectiveLayout layout = layout_of(schedule, size);
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const std::uint32_t blocks = layout.positions().blocks(w);
    const std::uint32_t pieces_in_block = schedule.step(w).pieces / blocks;
    ASSERT_EQ(positions(layout, w) % blocks, 0u);
    const ScheduleStep& step = schedule.step(w);
    for (unsigned r = step.sums ? 0 : step.send_streams.first; r < step.send_streams.end; ++r) {
      const ServerId receiver = plan.peer(server, thread, w, schedule.digit_at_offset(w, r));
      const std::vector<ServerId> owners = stream_owners(plan, thread, w, receiver);
      for (std::uint32_t block = 0; block < blocks; ++block) {
        ByteRange range{UINT64_MAX, 0};
        for (std::uint32_t i = 0; i < pieces_in_block; ++i) {
          const ServerId owner = owners[block * pieces_in_block + i];
          const ByteRange piece = piece_bytes(plan, {thread, owner}, size.bytes);
          range = {std::min(range.begin, piece.begin), std::max(range.end, piece.end)};
        }
        std::uint64_t at = range.begin;
        for (std::uint32_t q = block; q < positions(layout, w); q += blocks) {
          const SegmentRange segment = layout.segment(schedule, w, r, q);
          ASSERT_LE(segment.bytes, size.segment);
          if (segment.bytes == 0) continue;
          ASSERT_EQ(segment.begin, at);
          at += segment.bytes;
        }
        ASSERT_EQ(at, range.end) << size.bytes << " bytes, step " << w << ", offset " << r;
      }
    }
  }
}

TEST(CollectiveLayout, CutsEachBlockIntoSegmentsThatAreExactlyThePlansBytes) {
  for (const Topology& topology : small_topologies(30)) {
    const Plan plan = make_plan("bml", topology, "test");
    SCOPED_TRACE(topology.spec());
    for (ServerId server = 0; server < plan.servers(); ++server) {
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        for (const Size size : kSizes) expect_the_plans_bytes(plan, server, thread, size);
      }
    }
  }
}

TEST(CollectiveLayout, FollowsThePlanOnGridsOfServersAndWithUnequalWeights) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  std::vector<Plan> plans;
  for (const std::vector<ServerId>& members : all_grids(topology)) {
    const Placement placement = Placement::of(topology, members, "test");
    for (Plan& plan : fitting_plans(topology, placement)) plans.push_back(std::move(plan));
  }
  plans.emplace_back("weighted", topology, Placement::all(topology),
                     std::vector<PlanThread>{{1, {{3, 1}, {3, 3}}}, {3, {{3, 3}, {3, 1}}}});
  for (const Plan& plan : plans) {
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        for (const Size size : kSizes) expect_the_plans_bytes(plan, rank, thread, size);
      }
    }
  }
}

TEST(CollectiveLayout, BringsEveryByteOfTheBufferIntoTheFirstStepOnce) {
  for (const Topology& topology : small_topologies(30)) {
    const Plan plan = make_plan("bml", topology, "test");
    for (const Size size : kSizes) {
      std::vector<SegmentRange> all;
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        const ThreadSchedule schedule(plan, 0, thread);
        const CollectiveLayout layout = layout_of(schedule, size);
        for (unsigned r = 0; r < schedule.step(0).radix; ++r) {
          for (std::uint32_t q = 0; q < positions(layout, 0); ++q) {
            const SegmentRange segment = layout.segment(schedule, 0, r, q);
            if (segment.bytes != 0) all.push_back(segment);
          }
        }
      }
      std::sort(all.begin(), all.end(),
                [](const SegmentRange& a, const SegmentRange& b) { return a.begin < b.begin; });
      std::uint64_t at = 0;
      for (const SegmentRange& segment : all) {
        ASSERT_EQ(segment.begin, at) << topology.spec();
        at += segment.bytes;
      }
      ASSERT_EQ(at, size.bytes) << topology.spec();
    }
  }
}

// Part [U*i/n, U*(i+1)/n) of each level, as docs/bml.md works it out by example.
TEST(CollectiveLayout, DividesARangeByDigitsInTheOrderOfTheSteps) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const ServerId server = plan.space().parse("2,1");
  // One segment for each piece, which is too long for two of them: the segment is the piece.
  const Size size{100 * kUnitBytes, 6 * kUnitBytes};
  const ThreadSchedule first(plan, server, 0);
  // Digit 1 at level 0 first: 50 units are 16, 17, 17; then digit 2: 17 units are 5, 6, 6.
  EXPECT_EQ(layout_of(first, size).segment(first, 1, 0, 0),
            (SegmentRange{27 * kUnitBytes, 6 * kUnitBytes}));
  // Digit 2 at level 1 first: 50 units from 83; then digit 1: 17 units are 5, 6, 6.
  const ThreadSchedule second(plan, server, 1);
  EXPECT_EQ(layout_of(second, size).segment(second, 1, 0, 0),
            (SegmentRange{88 * kUnitBytes, 6 * kUnitBytes}));
}

TEST(CollectiveLayout, BeginsWhereTheCollectiveBeforeItEnded) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const ThreadSchedule schedule(plan, 4, 1);
  const CollectiveLayout layout(schedule, {}, 64, {{{100, 70}, {100, 70}}});
  EXPECT_EQ(layout.first(Stage::aggregation, 0), 100u);
  EXPECT_EQ(layout.end(Stage::aggregation, 0), 101u)
      << "even an empty collective meets every neighbour";
  EXPECT_EQ(layout.first(Stage::aggregation, 1), 70u);
  EXPECT_EQ(layout.end(Stage::aggregation, 1), 71u);
}

TEST(CollectiveLayout, CountsTheSequencesOfEachStageByItself) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const ThreadSchedule schedule(plan, 4, 1);
  const CollectiveLayout::StageSequences first = {{{100, 70}, {10, 20}}};
  const auto ends = [&](CollectiveKind kind) {
    const CollectiveLayout layout(schedule, {kind, 3, 9 * 300}, 64, first);
    EXPECT_EQ(layout.first(Stage::aggregation, 1), 70u);
    EXPECT_EQ(layout.first(Stage::broadcast, 0), 10u);
    return std::vector<std::uint64_t>{
        layout.end(Stage::aggregation, 0), layout.end(Stage::aggregation, 1),
        layout.end(Stage::broadcast, 0), layout.end(Stage::broadcast, 1)};
  };
  // 43 units: thread 1 has 22, and its longest piece 3 of them. Streams of 3 pieces, then of 1.
  EXPECT_EQ(ends(CollectiveKind::all_reduce), (std::vector<std::uint64_t>{109, 73, 19, 23}));
  EXPECT_EQ(ends(CollectiveKind::broadcast), (std::vector<std::uint64_t>{109, 73, 19, 23}));
  EXPECT_EQ(ends(CollectiveKind::reduce), (std::vector<std::uint64_t>{109, 73, 19, 23}));
  // A chunk has 5 units, and thread 1 has 3 of them.
  EXPECT_EQ(ends(CollectiveKind::reduce_scatter), (std::vector<std::uint64_t>{109, 73, 10, 20}));
  EXPECT_EQ(ends(CollectiveKind::all_gather), (std::vector<std::uint64_t>{100, 70, 19, 23}));
}

TEST(CollectiveLayout, GivesASmallCollectiveOneSegmentForEachExchange) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const ThreadSchedule schedule(plan, plan.space().parse("2,1"), 0);
  // A step's share is 16, 17 or 17 units, and the segment that has 17 of them goes to a peer whole.
  const CollectiveLayout layout = layout_of(schedule, {100 * kUnitBytes, 17 * kUnitBytes});
  for (unsigned w = 0; w < 2; ++w) ASSERT_EQ(positions(layout, w), 1u);
  EXPECT_EQ(layout.segment(schedule, 0, 1, 0), (SegmentRange{33 * kUnitBytes, 17 * kUnitBytes}));
  EXPECT_EQ(layout.segment(schedule, 1, 0, 0), (SegmentRange{27 * kUnitBytes, 6 * kUnitBytes}));
  const CollectiveLayout shorter = layout_of(schedule, {100 * kUnitBytes, 16 * kUnitBytes});
  EXPECT_EQ(positions(shorter, 0), 3u) << "17 units do not fit";
}

// What several segments cover, side by side or not.
struct CoveredBytes {
  std::uint64_t begin = UINT64_MAX;
  std::uint64_t end = 0;
  std::uint64_t count = 0;

  void add(SegmentRange range) {
    begin = std::min(begin, range.begin);
    end = std::max(end, range.begin + range.bytes);
    count += range.bytes;
  }
  bool operator==(const CoveredBytes&) const = default;
};

void expect_the_same_bytes_wherever_needed(const ThreadSchedule& schedule,
                                           const CollectiveLayout& layout) {
  const StreamPositions& positions = layout.positions();
  const auto at = [&](unsigned w, unsigned r, std::uint32_t q) {
    return layout.segment(schedule, w, r, q);
  };
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const auto count = static_cast<std::uint32_t>(layout.end(Stage::broadcast, w));
    for (std::uint32_t q = 0; q < count; ++q) {
      const StreamPositions::ResultSource source = positions.result_source(w, q);
      CoveredBytes needed, known;
      needed.add(at(w, 0, q));
      if (source.own) {
        known.add(at(schedule.last_step(), 0, source.position));
        for (unsigned u = source.step; u < schedule.steps(); ++u) {
          for (unsigned r = 1; r < schedule.step(u).radix; ++r) {
            known.add(at(u, r, source.position));
          }
        }
      } else {
        known.add(at(source.step, source.offset, source.position));
      }
      ASSERT_EQ(known, needed);
      for (unsigned r = 0; w > 0 && r < schedule.step(w).radix; ++r) {
        const SegmentRange sent = at(w, r, q);
        const SegmentRange summed = at(w - 1, 0, positions.at_previous_step(w, r, q));
        ASSERT_GE(sent.begin, summed.begin);
        ASSERT_LE(sent.begin + sent.bytes, summed.begin + summed.bytes);
      }
    }
  }
}

// What StreamPositions say holds for the bytes of every layout.
TEST(CollectiveLayout, HasTheSameBytesWhereverASegmentIsNeeded) {
  for (const Topology& topology : small_topologies(30)) {
    const Plan plan = make_plan("bml", topology, "test");
    SCOPED_TRACE(topology.spec());
    const Rank rank = plan.ranks() / 2;
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      const ThreadSchedule schedule(plan, rank, thread);
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
        for (const std::uint32_t segment_bytes : {64U, 448U, 1408U, 8896U}) {
          const CollectiveLayout layout(schedule, {kind, 0, plan.ranks() * std::uint64_t{333}},
                                        segment_bytes, CollectiveLayout::StageSequences{});
          expect_the_same_bytes_wherever_needed(schedule, layout);
        }
      }
    }
  }
}

TEST(CollectiveLayout, OrdersChunksByRankAndCountsTheirUnitsFromTheirOwnBegin) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  constexpr std::uint64_t kChunk = 300;  // 4 units and 44 bytes
  for (unsigned thread = 0; thread < 2; ++thread) {
    const ThreadSchedule schedule(plan, plan.space().parse("2,1"), thread);
    const CollectiveLayout layout(schedule, {CollectiveKind::reduce_scatter, 0, 9 * kChunk}, 4096,
                                  CollectiveLayout::StageSequences{});
    for (unsigned w = 0; w < 2; ++w) {
      for (unsigned r = 0; r < 3; ++r) {
        const Rank receiver = schedule.peer(w, r);
        const std::vector<Rank> owners = stream_owners(plan, thread, w, receiver);
        for (std::uint32_t q = 0; q < owners.size(); ++q) {
          const std::uint64_t begin = owners[q] * kChunk;
          const SegmentRange expected =
              thread == 0 ? SegmentRange{begin, 128} : SegmentRange{begin + 128, 172};
          EXPECT_EQ(layout.segment(schedule, w, r, q), expected);
        }
      }
    }
  }
}

TEST(CollectiveLayout, SaysWhichBuffersHaveMorePositionsThan32Bits) {
  const Plan plan = make_plan("bml", parse_topology("star:2", "test"), "test");
  const ThreadSchedule schedule(plan, 0, 0);
  const std::uint64_t most = 2 * 64 * std::uint64_t{UINT32_MAX};
  EXPECT_TRUE(CollectiveLayout::positions_fit(schedule, most, 64));
  EXPECT_FALSE(CollectiveLayout::positions_fit(schedule, most + 1, 64));
  EXPECT_TRUE(CollectiveLayout::positions_fit(schedule, 2 * most, 128));
  const CollectiveLayout layout(schedule, {.bytes = most}, 64, {});
  EXPECT_EQ(layout.segment(schedule, 0, 1, UINT32_MAX - 1), (SegmentRange{most - 64, 64}));
}

// With two equal threads and nine ranks, a chunk of one unit more than an even number gives a
// thread more than a piece of the whole buffer is long.
TEST(CollectiveLayout, HasRoomForThePositionsOfEveryKind) {
  const Plan plan = make_plan("bml", parse_topology("bcube:3,2", "test"), "test");
  const ThreadSchedule schedule(plan, 0, 1);
  constexpr std::uint64_t kMostSegments = UINT32_MAX / 3;  // step 0 has three pieces
  const std::uint64_t fits = 9 * (2 * kMostSegments) * kUnitBytes;
  const std::uint64_t too_many = 9 * (2 * kMostSegments + 1) * kUnitBytes;
  EXPECT_TRUE(CollectiveLayout::positions_fit(schedule, fits, 64));
  EXPECT_FALSE(CollectiveLayout::positions_fit(schedule, too_many, 64));
  const CollectiveLayout layout(schedule, {CollectiveKind::all_gather, 0, fits}, 64,
                                CollectiveLayout::StageSequences{});
  EXPECT_EQ(layout.end(Stage::broadcast, 0), 3 * kMostSegments);
  EXPECT_EQ(layout.segment(schedule, 0, 0, 3 * kMostSegments - 1).bytes, kUnitBytes);
}

TEST(CollectiveLayout, CountsThePositionsOfTheLargestShare) {
  const Topology topology = parse_topology("star:2", "test");
  const std::vector<PlanStep> steps = {{2, 1}};
  const Plan plan("weighted", topology, Placement::all(topology), {{1, steps}, {3, steps}});
  // Three quarters of it have 2^32-1 units for each of two pieces.
  const std::uint64_t most = 2 * 64 * (std::uint64_t{UINT32_MAX} / 3 * 4);
  EXPECT_TRUE(CollectiveLayout::positions_fit(ThreadSchedule(plan, 0, 1), most, 64));
  EXPECT_FALSE(CollectiveLayout::positions_fit(ThreadSchedule(plan, 0, 1), most + 1, 64));
  EXPECT_TRUE(CollectiveLayout::positions_fit(ThreadSchedule(plan, 0, 0), 3 * most, 64));
  EXPECT_FALSE(CollectiveLayout::positions_fit(ThreadSchedule(plan, 0, 0), 3 * most + 1, 64));
}

}  // namespace
}  // namespace gradcube::control
