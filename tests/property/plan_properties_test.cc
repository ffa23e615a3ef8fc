// Every plan is the collective that it says, whatever it was drawn from: proved by the verifier, by
// its sample, and by running a collective of any kind and size over its streams.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <string>

#include "control/plan/plan_choice.h"
#include "control/plan/verify.h"
#include "tests/property/drawn_plan.h"
#include "tests/unit/control/collective_run.h"

namespace gradcube::property {
namespace {

using control::CollectiveKind;
using control::CollectiveRun;
using control::CollectiveShape;
using control::Plan;
using control::Rank;

constexpr std::uint32_t kMostServers = 24;

struct DrawnCollective {
  unsigned kind = 0;
  Rank root = 0;
  std::uint64_t bytes = 0;  // of a chunk, where each rank has one
  std::uint32_t segment_units = 1;

  CollectiveShape shape(const Plan& plan) const {
    CollectiveKind of = control::kCollectiveKinds[kind];
    if (!control::can_run(plan, of, 0)) of = CollectiveKind::all_reduce;
    if (of == CollectiveKind::barrier) return {of, 0, 0};
    return {of, control::has_root(of) ? root % plan.ranks() : 0,
            control::is_rank_ordered(of) ? bytes * plan.ranks() : bytes};
  }
};

void showValue(const DrawnCollective& drawn, std::ostream& out) {
  out << fmt::format("{}, root {} modulo the ranks, {} bytes, segments of {} units",
                     control::collective_kind_name(control::kCollectiveKinds[drawn.kind]),
                     drawn.root, drawn.bytes, drawn.segment_units);
}

rc::Gen<DrawnCollective> drawn_collectives() {
  return rc::gen::build<DrawnCollective>(
      rc::gen::set(&DrawnCollective::kind,
                   rc::gen::inRange(0U, unsigned{control::kCollectiveKinds.size()})),
      rc::gen::set(&DrawnCollective::root, rc::gen::inRange<Rank>(0, kMostServers)),
      rc::gen::set(&DrawnCollective::bytes, rc::gen::inRange<std::uint64_t>(0, 5000)),
      rc::gen::set(&DrawnCollective::segment_units, rc::gen::inRange<std::uint32_t>(1, 24)));
}

// Whether the kind defines this segment at the rank.
bool defines(const CollectiveRun& run, const CollectiveShape& shape, Rank rank,
             std::size_t segment) {
  if (shape.kind == CollectiveKind::reduce) return rank == shape.root;
  if (shape.kind == CollectiveKind::reduce_scatter) {
    return rank == run.chunk(run.segments()[segment]);
  }
  return true;
}

// How often the input of rank `from` is to be in it.
unsigned wanted(const CollectiveRun& run, const CollectiveShape& shape, Rank from,
                std::size_t segment) {
  if (shape.kind == CollectiveKind::broadcast) return from == shape.root ? 1 : 0;
  if (shape.kind == CollectiveKind::all_gather) {
    return from == run.chunk(run.segments()[segment]) ? 1 : 0;
  }
  return 1;
}

TEST(PlanProperties, EveryPlanIsAnAllReduce) {
  EXPECT_TRUE(rc::check("the verifier proves it, and so does its sample", [] {
    const DrawnPlan drawn = *drawn_plans(kMostServers);
    const Plan plan = drawn.plan();
    RC_TAG(plan.algorithm().substr(0, plan.algorithm().find(':')));
    const control::VerifyReport report = control::verify(plan);
    RC_ASSERT(report.ranks == drawn.servers().size());
    const control::Sample sample = control::draw_sample(plan, drawn.algorithm, 3);
    const std::vector<std::uint64_t> link_pieces = control::verify(plan, sample).link_pieces;
    for (std::size_t level = 0; level < link_pieces.size(); ++level) {
      RC_ASSERT(link_pieces[level] <= report.link_pieces[level]);
    }
  }));
}

TEST(PlanProperties, EveryKindOfCollectiveBringsWhatItDefinesInAnySize) {
  EXPECT_TRUE(rc::check("each rank's input is where the kind wants it", [] {
    const DrawnPlan drawn = *drawn_plans(kMostServers);
    const DrawnCollective collective = *drawn_collectives();
    const Plan plan = drawn.plan();
    const CollectiveShape shape = collective.shape(plan);
    RC_TAG(std::string(control::collective_kind_name(shape.kind)));
    const CollectiveRun run(plan, shape, collective.segment_units * control::kUnitBytes);
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      for (std::size_t segment = 0; segment < run.segments().size(); ++segment) {
        if (!defines(run, shape, rank, segment)) continue;
        for (Rank from = 0; from < plan.ranks(); ++from) {
          RC_ASSERT(run.counts(rank, segment)[from] == wanted(run, shape, from, segment));
        }
      }
    }
  }));
}

}  // namespace
}  // namespace gradcube::property
