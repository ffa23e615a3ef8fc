#include "control/plan/local_stage.h"

#include <gtest/gtest.h>

#include "control/plan/algorithms.h"
#include "control/plan/streams.h"
#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

bool is_of(const SegmentRange& range, std::uint64_t begin, std::uint32_t bytes) {
  return range.bytes == bytes && (bytes == 0 || range.begin == begin);
}

TEST(LocalStage, OfOneTrainerWorksOnItsBuffer) {
  const LocalStage stage;
  EXPECT_TRUE(stage.alone());
  EXPECT_EQ(stage.base(), 0u);
}

TEST(LocalStage, AddsWholeRangesWhereTheKindReduces) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::reduce}) {
    const LocalStage stage(3, 1, 2, kind, 0, 600);
    for (unsigned local = 0; local < 3; ++local) {
      EXPECT_TRUE(is_of(stage.given(local, {128, 64}), 128, 64));
    }
  }
}

TEST(LocalStage, WorksOnTheBufferOfTheRootWhereItIsOneOfItsTrainers) {
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::reduce}) {
    EXPECT_EQ(LocalStage(3, 1, 2, kind, 5, 600).base(), 2u);
    EXPECT_EQ(LocalStage(3, 0, 2, kind, 5, 600).base(), 0u);
  }
  EXPECT_EQ(LocalStage(3, 1, 2, CollectiveKind::all_reduce, 0, 600).base(), 0u);
}

// Six chunks of 100 bytes; this server's begin at 300.
TEST(LocalStage, GathersItsTrainersChunks) {
  const LocalStage stage(3, 1, 2, CollectiveKind::all_gather, 0, 600);
  EXPECT_TRUE(is_of(stage.given(0, {300, 300}), 0, 0)) << "it lies in the base already";
  EXPECT_TRUE(is_of(stage.given(1, {300, 300}), 400, 100));
  EXPECT_TRUE(is_of(stage.given(1, {450, 100}), 450, 50));
  EXPECT_TRUE(is_of(stage.given(2, {300, 200}), 0, 0));
  EXPECT_TRUE(is_of(stage.given(1, {0, 300}), 0, 0)) << "that of the other server";
  EXPECT_TRUE(is_of(stage.wanted(2, {0, 300}), 0, 300));
}

TEST(LocalStage, GivesEachTrainerItsChunkOfAReduceScatter) {
  const LocalStage stage(3, 1, 2, CollectiveKind::reduce_scatter, 0, 600);
  EXPECT_TRUE(is_of(stage.wanted(0, {300, 300}), 0, 0)) << "it lies there already";
  EXPECT_TRUE(is_of(stage.wanted(1, {350, 100}), 400, 50));
  EXPECT_TRUE(is_of(stage.wanted(2, {350, 100}), 0, 0));
}

TEST(LocalStage, LeavesTheResultOfAReduceWithTheRoot) {
  const LocalStage stage(2, 0, 2, CollectiveKind::reduce, 1, 64);
  EXPECT_TRUE(is_of(stage.wanted(0, {0, 64}), 0, 0));
  EXPECT_TRUE(is_of(stage.wanted(1, {0, 64}), 0, 0));
}

// Each trainer is added where the first step takes its server's bytes up.
TEST(LocalStage, MeetsEveryByteOnceInEveryPlan) {
  for (const Topology& topology : small_topologies(12)) {
    for (const Plan& plan : fitting_plans(topology, Placement::all(topology))) {
      SCOPED_TRACE(plan.algorithm() + " on " + topology.spec());
      for (unsigned depth = 1; depth <= plan.steps(); ++depth) {
        EXPECT_NO_THROW(Streams(plan, depth).check_first_step());
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::control
