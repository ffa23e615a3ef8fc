// The data path's arithmetic against the plan's own: positions and owners, segments and bytes.

#include "dataplane/engine/thread_schedule.h"

#include <algorithm>
#include <functional>
#include <gtest/gtest.h>
#include <vector>

#include "control/plan/algorithms.h"
#include "dataplane/engine/collective_layout.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::dataplane {
namespace {

using control::ByteRange;
using control::Plan;
using control::ServerId;

constexpr std::uint32_t kRows = 3;

// Calls visit(plan, schedule, server, thread) for every thread of every server of small topologies.
void for_every_thread(
    const std::function<void(const Plan&, const ThreadSchedule&, ServerId, unsigned)>& visit) {
  for (const control::Topology& topology : control::small_topologies(30)) {
    const Plan plan = control::make_plan("bml", topology, "test");
    SCOPED_TRACE(topology.spec());
    for (ServerId server = 0; server < plan.servers(); ++server) {
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        visit(plan, ThreadSchedule(plan, server, thread), server, thread);
      }
    }
  }
}

// The owner of the piece at position q of the stream that `receiver` receives at step w.
ServerId owner_at(const Plan& plan, unsigned thread, unsigned w, ServerId receiver,
                  std::uint32_t q) {
  return plan.stream_piece_owner(thread, w, receiver, q % plan.stream_pieces(thread, w));
}

TEST(ThreadSchedule, HasThePlansLevelsDigitsAndPieces) {
  for_every_thread(
      [](const Plan& plan, const ThreadSchedule& schedule, ServerId server, unsigned thread) {
        ASSERT_EQ(schedule.steps(), plan.steps());
        for (unsigned w = 0; w < schedule.steps(); ++w) {
          const ScheduleStep& step = schedule.step(w);
          ASSERT_EQ(step.level, plan.level(thread, w));
          ASSERT_EQ(step.radix, plan.radix(thread, w));
          ASSERT_EQ(step.digit, plan.space().digit(server, step.level));
          ASSERT_EQ(step.pieces, plan.stream_pieces(thread, w));
          ASSERT_EQ(schedule.step_of_level(step.level), w);
          for (unsigned r = 0; r < step.radix; ++r) {
            ASSERT_EQ(schedule.offset_of_digit(w, schedule.digit_at_offset(w, r)), r);
          }
        }
      });
}

TEST(ThreadSchedule, NamesOnePieceByOnePositionInEveryStreamThatItPasses) {
  for_every_thread(
      [](const Plan& plan, const ThreadSchedule& schedule, ServerId server, unsigned thread) {
        for (unsigned w = 1; w < schedule.steps(); ++w) {
          for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
            const ServerId receiver = plan.peer(server, thread, w, schedule.digit_at_offset(w, r));
            for (std::uint32_t q = 0; q < kRows * schedule.step(w).pieces; ++q) {
              const std::uint32_t before = schedule.at_previous_step(w, r, q);
              ASSERT_EQ(owner_at(plan, thread, w - 1, server, before),
                        owner_at(plan, thread, w, receiver, q));
              ASSERT_EQ(before / schedule.step(w - 1).pieces, q / schedule.step(w).pieces)
                  << "another row";
              const ThreadSchedule::NextStep next = schedule.at_next_step(w - 1, before);
              ASSERT_EQ(next.offset, r);
              ASSERT_EQ(next.position, q);
            }
          }
        }
      });
}

TEST(ThreadSchedule, FindsEachResultAtItsOwnerOrInTheStreamThatBringsItBack) {
  for_every_thread([](const Plan& plan, const ThreadSchedule& schedule, ServerId server,
                      unsigned thread) {
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      for (std::uint32_t q = 0; q < kRows * schedule.step(w).pieces; ++q) {
        const ServerId owner = owner_at(plan, thread, w, server, q);
        const ThreadSchedule::ResultSource source = schedule.result_source(w, q);
        ASSERT_EQ(source.own, owner == server);
        if (source.own) {
          ASSERT_EQ(source.step, schedule.last_step());
          ASSERT_EQ(source.position, q / schedule.step(w).pieces);
          continue;
        }
        ASSERT_GT(source.step, w);
        const ServerId peer = plan.peer(server, thread, source.step,
                                        schedule.digit_at_offset(source.step, source.offset));
        ASSERT_EQ(owner_at(plan, thread, source.step, peer, source.position), owner);
        ASSERT_EQ(source.position / schedule.step(source.step).pieces, q / schedule.step(w).pieces);
      }
    }
  });
}

struct Size {
  std::uint64_t bytes;
  std::uint32_t segment;
};
const std::vector<Size> kSizes = {{0, 64},       {1, 64},        {63, 128},
                                  {64, 64},      {65, 64},       {4099, 64},
                                  {12'345, 256}, {99'999, 1408}, {1'000'000, 8896}};

CollectiveLayout layout_of(const Plan& plan, const ThreadSchedule& schedule, unsigned thread,
                           Size size) {
  return CollectiveLayout(schedule, plan.thread_range(thread, size.bytes), size.bytes, size.segment,
                          {});
}

TEST(CollectiveLayout, CutsEachPieceIntoSegmentsThatAreExactlyThePlansBytes) {
  for_every_thread([](const Plan& plan, const ThreadSchedule& schedule, ServerId server,
                      unsigned thread) {
    for (const Size size : kSizes) {
      const CollectiveLayout layout = layout_of(plan, schedule, thread, size);
      for (unsigned w = 0; w < schedule.steps(); ++w) {
        const std::uint32_t pieces = schedule.step(w).pieces;
        ASSERT_EQ(layout.length(w), layout.rows() * pieces);
        for (unsigned r = 0; r < schedule.step(w).radix; ++r) {
          const ServerId receiver = plan.peer(server, thread, w, schedule.digit_at_offset(w, r));
          for (std::uint32_t piece = 0; piece < pieces; ++piece) {
            const ServerId owner = plan.stream_piece_owner(thread, w, receiver, piece);
            const ByteRange range = plan.piece_range({thread, owner}, size.bytes);
            std::uint64_t at = range.begin;
            for (std::uint32_t row = 0; row < layout.rows(); ++row) {
              const SegmentRange segment = layout.segment(schedule, w, r, row * pieces + piece);
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
  });
}

TEST(CollectiveLayout, BringsEveryByteOfTheBufferIntoTheFirstStepOnce) {
  for (const control::Topology& topology : control::small_topologies(30)) {
    const Plan plan = control::make_plan("bml", topology, "test");
    for (const Size size : kSizes) {
      std::vector<SegmentRange> all;
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        const ThreadSchedule schedule(plan, 0, thread);
        const CollectiveLayout layout = layout_of(plan, schedule, thread, size);
        for (unsigned r = 0; r < schedule.step(0).radix; ++r) {
          for (std::uint32_t q = 0; q < layout.length(0); ++q) {
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

TEST(CollectiveLayout, BeginsWhereTheCollectiveBeforeItEnded) {
  const Plan plan = control::make_plan("bml", control::parse_topology("bcube:3,2", "test"), "test");
  const ThreadSchedule schedule(plan, 4, 1);
  std::array<std::uint64_t, kMaxSteps> first{100, 70};
  const CollectiveLayout layout(schedule, plan.thread_range(1, 0), 0, 64, first);
  EXPECT_EQ(layout.first(0), 100u);
  EXPECT_EQ(layout.end(0), 103u) << "even an empty collective meets every neighbour";
  EXPECT_EQ(layout.first(1), 70u);
  EXPECT_EQ(layout.end(1), 71u);
}

}  // namespace
}  // namespace gradcube::dataplane
