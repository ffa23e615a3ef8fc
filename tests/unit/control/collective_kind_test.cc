#include "control/plan/collective_kind.h"

#include <cstdlib>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/plan_choice.h"
#include "tests/unit/control/collective_run.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// All roots of few ranks; of many, the first, the last and one between.
std::vector<Rank> roots(const Plan& plan) {
  if (plan.ranks() > 9) return {0, plan.ranks() / 2, plan.ranks() - 1};
  std::vector<Rank> all(plan.ranks());
  for (Rank rank = 0; rank < plan.ranks(); ++rank) all[rank] = rank;
  return all;
}

// BML on every small topology, every algorithm on those of up to 16 servers and on every grid of
// servers of one, and other plans: those of them that can run this kind.
void for_every_plan(CollectiveKind kind, const std::function<void(const Plan&)>& visit_one) {
  const auto visit = [&](const Plan& plan) {
    if (can_run(plan, kind, 0)) visit_one(plan);
  };
  // Plans are proved for as many as 81 servers; what they carry of each kind, with --deep alone.
  const std::uint32_t most = std::getenv("GRADCUBE_TEST_DEEP") == nullptr ? 32 : 81;
  for (const Topology& topology : small_topologies(most)) {
    SCOPED_TRACE(topology.spec());
    if (topology.servers() > 16) {
      visit(make_plan("bml", topology, "test"));
      continue;
    }
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) visit(plan);
  }
  const Topology cube = parse_topology("bcube:3,2", "test");
  for (const std::vector<ServerId>& members : all_grids(cube)) {
    for (const Plan& plan : fitting_plans(cube, Placement::of(cube, members, "test"))) {
      visit(plan);
    }
  }
  const Topology wide = parse_topology("bcube:4,2", "test");
  visit(Plan("weighted", wide, Placement::all(wide),
             {{1, {{4, 1}, {4, 4}}}, {3, {{2, 8}, {2, 4}, {2, 1}, {2, 2}}}}));
  for (const char* several : {"hips:2xroot", "ps:0,1 3,2"}) visit(make_plan(several, wide, "test"));
  visit(Plan("flat", wide, Placement::all(wide), {{1, {{16, 1}}}}));
}

// Bytes of a buffer or a chunk, and of a segment: no whole units, pieces of several segments, and
// segments of several pieces.
constexpr std::pair<std::uint64_t, std::uint32_t> kOddSizes[] = {
    {0, 64},   {1, 64},    {3, 64},     {61, 64},    {64, 64},
    {199, 64}, {1000, 64}, {1000, 448}, {9001, 448}, {9001, 1408}};

// Expects of what `rank` has of a segment that it is what `expected` says of each rank.
template <typename Expected>
void expect_counts(const CollectiveRun& run, const Plan& plan, Rank rank, std::size_t segment,
                   Expected&& expected) {
  const std::uint8_t* counts = run.counts(rank, segment);
  for (Rank from = 0; from < plan.ranks(); ++from) {
    ASSERT_EQ(counts[from], expected(from))
        << "of rank " << from << " in segment " << segment << " at rank " << rank;
  }
}

constexpr auto kEachOnce = [](Rank) { return 1; };
constexpr auto only(Rank rank) {
  return [rank](Rank from) { return from == rank ? 1 : 0; };
}

TEST(CollectiveKind, AllReduceBringsEachRanksInputOnceToEveryRank) {
  for_every_plan(CollectiveKind::all_reduce, [](const Plan& plan) {
    for (const auto& [size, segment_bytes] : kOddSizes) {
      const CollectiveRun run(plan, {CollectiveKind::all_reduce, 0, size}, segment_bytes);
      for (Rank rank = 0; rank < plan.ranks(); ++rank) {
        for (std::size_t s = 0; s < run.segments().size(); ++s) {
          ASSERT_NO_FATAL_FAILURE(expect_counts(run, plan, rank, s, kEachOnce));
        }
      }
    }
  });
}

TEST(CollectiveKind, ReduceScatterReducesEachChunkAtTheRankOfItsNumber) {
  for_every_plan(CollectiveKind::reduce_scatter, [](const Plan& plan) {
    for (const auto& [chunk, segment_bytes] : kOddSizes) {
      const CollectiveRun run(plan, {CollectiveKind::reduce_scatter, 0, chunk * plan.ranks()},
                              segment_bytes);
      // What a reduce-scatter needs: each rank sends and receives N-1 of N chunks. With a root it
      // is an all-reduce.
      const std::uint64_t bytes = chunk * plan.ranks() * (plan.ranks() - 1);
      ASSERT_EQ(run.bytes_sent(Stage::broadcast), plan.has_root_step() ? bytes : 0);
      ASSERT_EQ(run.bytes_sent(Stage::aggregation), bytes);
      for (std::size_t s = 0; s < run.segments().size(); ++s) {
        ASSERT_NO_FATAL_FAILURE(
            expect_counts(run, plan, run.chunk(run.segments()[s]), s, kEachOnce));
      }
    }
  });
}

TEST(CollectiveKind, AllGatherBringsTheChunkOfEachRankToEveryRank) {
  for_every_plan(CollectiveKind::all_gather, [](const Plan& plan) {
    for (const auto& [chunk, segment_bytes] : kOddSizes) {
      const CollectiveRun run(plan, {CollectiveKind::all_gather, 0, chunk * plan.ranks()},
                              segment_bytes);
      const std::uint64_t bytes = chunk * plan.ranks() * (plan.ranks() - 1);
      ASSERT_EQ(run.bytes_sent(Stage::aggregation), plan.has_root_step() ? bytes : 0);
      ASSERT_EQ(run.bytes_sent(Stage::broadcast), bytes);
      for (Rank rank = 0; rank < plan.ranks(); ++rank) {
        for (std::size_t s = 0; s < run.segments().size(); ++s) {
          ASSERT_NO_FATAL_FAILURE(
              expect_counts(run, plan, rank, s, only(run.chunk(run.segments()[s]))));
        }
      }
    }
  });
}

TEST(CollectiveKind, BroadcastBringsTheRootsBufferToEveryRank) {
  for_every_plan(CollectiveKind::broadcast, [](const Plan& plan) {
    for (const Rank root : roots(plan)) {
      for (const auto& [size, segment_bytes] : kOddSizes) {
        const CollectiveRun run(plan, {CollectiveKind::broadcast, root, size}, segment_bytes);
        ASSERT_EQ(run.bytes_sent(Stage::broadcast), size * (plan.ranks() - 1));
        for (Rank rank = 0; rank < plan.ranks(); ++rank) {
          for (std::size_t s = 0; s < run.segments().size(); ++s) {
            ASSERT_NO_FATAL_FAILURE(expect_counts(run, plan, rank, s, only(root)));
          }
        }
      }
    }
  });
}

TEST(CollectiveKind, ReduceBringsEachRanksInputOnceToTheRoot) {
  for_every_plan(CollectiveKind::reduce, [](const Plan& plan) {
    for (const Rank root : roots(plan)) {
      for (const auto& [size, segment_bytes] : kOddSizes) {
        const CollectiveRun run(plan, {CollectiveKind::reduce, root, size}, segment_bytes);
        ASSERT_EQ(run.bytes_sent(Stage::aggregation), size * (plan.ranks() - 1));
        for (std::size_t s = 0; s < run.segments().size(); ++s) {
          ASSERT_NO_FATAL_FAILURE(expect_counts(run, plan, root, s, kEachOnce));
        }
      }
    }
  });
}

// A scatter and a gather pass each piece once over each digit in which its owner differs from the
// root, and nothing else.
TEST(CollectiveKind, ScattersAndGathersOnlyAlongTheTreeOfTheRoot) {
  const Topology topology = parse_topology("bcube:3,2", "test");
  const Plan plan = make_plan("bml", topology, "test");
  const std::uint64_t bytes = plan.pieces() * kUnitBytes;
  // Of the nine pieces of a thread, the owners of four differ from the root in one digit, and those
  // of four in both.
  const std::uint64_t along_the_tree = plan.threads() * (4 * 1 + 4 * 2) * kUnitBytes;
  for (const Rank root : roots(plan)) {
    const CollectiveRun broadcast(plan, {CollectiveKind::broadcast, root, bytes}, kUnitBytes);
    EXPECT_EQ(broadcast.bytes_sent(Stage::aggregation), along_the_tree);
    const CollectiveRun reduce(plan, {CollectiveKind::reduce, root, bytes}, kUnitBytes);
    EXPECT_EQ(reduce.bytes_sent(Stage::broadcast), along_the_tree);
  }
}

// Each piece passes as many digits as lie between its owner and the root.
TEST(CollectiveKind, ScattersAndGathersOverARingNoFurtherThanItMust) {
  const Plan plan = make_plan("hips:ring", parse_topology("star:5", "test"), "test");
  const std::uint64_t bytes = plan.pieces() * kUnitBytes;
  for (const Rank root : roots(plan)) {
    const CollectiveRun broadcast(plan, {CollectiveKind::broadcast, root, bytes}, kUnitBytes);
    EXPECT_EQ(broadcast.bytes_sent(Stage::aggregation), (1 + 2 + 3 + 4) * kUnitBytes);
    const CollectiveRun reduce(plan, {CollectiveKind::reduce, root, bytes}, kUnitBytes);
    EXPECT_EQ(reduce.bytes_sent(Stage::broadcast), (1 + 2 + 3 + 4) * kUnitBytes);
  }
}

TEST(CollectiveKind, BarrierMeetsEveryPeerInEachStageWithoutABuffer) {
  for_every_plan(CollectiveKind::barrier, [](const Plan& plan) {
    const ThreadSchedule schedule(plan, 0, 0);
    const CollectiveLayout layout(schedule, {CollectiveKind::barrier, 0, 0}, kUnitBytes,
                                  CollectiveLayout::StageSequences{});
    for (unsigned w = 0; w < schedule.steps(); ++w) {
      EXPECT_GE(layout.end(Stage::aggregation, w), 1u);
      EXPECT_EQ(layout.end(Stage::broadcast, w) == 0, plan.doubles());
    }
    const CollectiveRun run(plan, {CollectiveKind::barrier, 0, 0}, kUnitBytes);
    EXPECT_TRUE(run.segments().empty());
  });
}

TEST(CollectiveKind, HasANumber) {
  for (std::size_t number = 0; number < kCollectiveKinds.size(); ++number) {
    const CollectiveKind kind = kCollectiveKinds[number];
    EXPECT_EQ(static_cast<std::size_t>(kind), number);
    EXPECT_EQ(collective_kind_numbered(number), kind);
  }
  EXPECT_EQ(collective_kind_numbered(6), std::nullopt);
  EXPECT_EQ(collective_kind_numbered(UINT64_MAX), std::nullopt);
}

TEST(CollectiveKind, SaysWhatItNeeds) {
  std::string table;
  for (const CollectiveKind kind : kCollectiveKinds) {
    table += collective_kind_name(kind);
    table += has_stage(kind, Stage::aggregation) ? " aggregation" : "";
    table += has_stage(kind, Stage::broadcast) ? " broadcast" : "";
    table += is_rank_ordered(kind) ? " rank-ordered" : "";
    table += has_root(kind) ? " root" : "";
    table += reduces(kind) ? " reduces\n" : "\n";
  }
  EXPECT_EQ(table,
            "all-reduce aggregation broadcast reduces\n"
            "reduce-scatter aggregation rank-ordered reduces\n"
            "all-gather broadcast rank-ordered\n"
            "broadcast aggregation broadcast root\n"
            "reduce aggregation broadcast root reduces\n"
            "barrier aggregation broadcast reduces\n");
}

}  // namespace
}  // namespace gradcube::control
