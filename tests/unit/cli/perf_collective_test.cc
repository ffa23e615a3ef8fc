#include "cli/measure/perf_collective.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/base/topology.h"
#include "control/plan/collective_layout.h"
#include "control/plan/plan_choice.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;
using control::Plan;
using control::Rank;
using control::Stage;

Plan plan_on(const char* spec, const std::vector<control::ServerId>& members = {},
             const char* algorithm = "bml") {
  const auto topology = control::parse_topology(spec, "test");
  const auto placement = members.empty() ? control::Placement::all(topology)
                                         : control::Placement::of(topology, members, "test");
  return control::make_plan(algorithm, topology, placement, "test");
}

// The most bytes that a port of a server sends or receives in a collective, counted segment by
// segment as the data path lays them out.
class PortLoad {
 public:
  PortLoad(const Plan& plan, CollectiveKind kind, Rank root, std::uint64_t bytes)
      : plan_(plan), shape_{kind, root, bytes, nullptr} {
    for (Rank rank = 0; rank < plan.ranks(); ++rank) {
      std::vector<std::uint64_t> sent(plan.topology().levels()), received(sent);
      for (unsigned thread = 0; thread < plan.threads(); ++thread) {
        for (unsigned w = 0; w < plan.steps(thread); ++w) add(rank, thread, w, sent, received);
      }
      for (const auto& port : {sent, received}) {
        most_ = std::max(most_, *std::max_element(port.begin(), port.end()));
      }
    }
  }

  std::uint64_t most() const { return most_; }

 private:
  void add(Rank rank, unsigned thread, unsigned w, std::vector<std::uint64_t>& sent,
           std::vector<std::uint64_t>& received) const {
    const control::ThreadSchedule schedule(plan_, rank, thread);
    const control::CollectiveLayout layout(schedule, shape_, 4096, {});
    const control::ScheduleStep& step = schedule.step(w);
    const unsigned level = plan_.level(thread, w).value();
    for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
      const auto length = static_cast<std::uint32_t>(layout.end(stage, w) - layout.first(stage, w));
      for (std::uint32_t q = 0; q < length; ++q) {
        const control::Offsets& targets = step.targets_in(stage);
        for (unsigned r = targets.first; r < targets.end; ++r) {
          const auto [part, at, round] = layout.part_sent(schedule, stage, w, r, q);
          if (!layout.sends(schedule, stage, w, r, round)) continue;
          sent[level] += layout.segment(schedule, w, part, at).bytes;
        }
        const control::Offsets& sources = step.sources_in(stage);
        for (unsigned r = sources.first; r < sources.end; ++r) {
          const auto [part, at, round] = layout.part_received(schedule, stage, w, r, q);
          if (!layout.receives(schedule, stage, w, r, round)) continue;
          received[level] += layout.segment(schedule, w, part, at).bytes;
        }
      }
    }
  }

  const Plan& plan_;
  control::CollectiveShape shape_;
  std::uint64_t most_ = 0;
};

TEST(BusiestLink, IsWhatTheBusiestPortCarriesInTheStreamsOfEveryKind) {
  const std::vector<Plan> plans = {plan_on("bcube:3,2"),
                                   plan_on("bcube:2,3"),
                                   plan_on("star:5"),
                                   plan_on("bcube:3,2", {3, 4, 5}),
                                   plan_on("bcube:3,2", {0, 1, 2, 3, 4, 5}),
                                   plan_on("bcube:3,2", {}, "hips:ring"),
                                   plan_on("bcube:4,2", {}, "hips:mesh,ring"),
                                   plan_on("bcube:3,2", {}, "hips:root"),
                                   plan_on("bcube:4,2", {}, "hips:mesh,root"),
                                   plan_on("star:5", {}, "hips:root"),
                                   plan_on("bcube:4x3", {}, "recursive_doubling")};
  for (const Plan& plan : plans) {
    // Whole units for every piece, so that every share is exact.
    const std::uint64_t bytes = 64 * 3 * plan.threads() * plan.ranks();
    for (const CollectiveKind kind : control::kCollectiveKinds) {
      if (kind == CollectiveKind::barrier || !control::can_run(plan, kind, bytes)) continue;
      if (plan.has_root_step() && control::has_root(kind)) {
        EXPECT_FALSE(busiest_link(plan, kind).has_value());
        continue;
      }
      SCOPED_TRACE(testing::Message() << perf_name(kind) << " on " << plan.ranks() << " ranks of "
                                      << plan.topology().spec());
      for (Rank root = 0; root < (control::has_root(kind) ? plan.ranks() : 1); ++root) {
        const double share = busiest_link(plan, kind).value().share;
        EXPECT_DOUBLE_EQ(share * static_cast<double>(bytes),
                         static_cast<double>(PortLoad(plan, kind, root, bytes).most()));
      }
    }
  }
}

// BML, section 3.2: 2(N-1)/(kN) of the gradient, on a BCube of N servers with k ports each.
double share_by_the_paper(double servers, double ports) {
  return 2 * (servers - 1) / (ports * servers);
}

TEST(BusiestLink, OfAnAllReduceOnABcubeIsThatOfThePaper) {
  const auto share = [](const char* spec) {
    return busiest_link(plan_on(spec), CollectiveKind::all_reduce).value().share;
  };
  EXPECT_DOUBLE_EQ(share("bcube:3,2"), share_by_the_paper(9, 2));
  EXPECT_DOUBLE_EQ(share("bcube:2,3"), share_by_the_paper(8, 3));
  EXPECT_DOUBLE_EQ(share("bcube:16,4"), share_by_the_paper(65536, 4));
  EXPECT_DOUBLE_EQ(share("star:5"), share_by_the_paper(5, 1));
}

TEST(BusiestLink, IsTheOneThatTakesLongestAtItsLevelsRate) {
  const auto busiest = [](const char* spec, const std::vector<std::uint64_t>& rates) {
    const auto topology = control::parse_topology(spec, "test").with_rates(rates);
    return busiest_link(control::make_plan("hips:mesh", topology, "test"),
                        CollectiveKind::all_reduce)
        .value();
  };
  // With equal shares level 0 carries a third of the gradient in each stage, level 1 a half.
  EXPECT_EQ(busiest("bcube:3x2", {0, 0}).level, 1u);
  EXPECT_EQ(busiest("bcube:3x2", {100, 160}).level, 0u);
  EXPECT_DOUBLE_EQ(busiest("bcube:3x2", {100, 160}).share, 2.0 / 3);
  EXPECT_EQ(busiest("bcube:3x2", {100, 140}).level, 1u);
  EXPECT_DOUBLE_EQ(busiest("bcube:3x2", {100, 140}).share, 1);
}

TEST(BusiestLink, IsNotClaimedForABarrierOrAStepOverSeveralLevels) {
  EXPECT_FALSE(busiest_link(plan_on("bcube:3,2"), CollectiveKind::barrier).has_value());
  const auto cube = control::parse_topology("bcube:3,2", "test");
  const Plan flat("flat", cube, control::Placement::all(cube), {{1, {{9, 1}}}});
  EXPECT_FALSE(busiest_link(flat, CollectiveKind::all_reduce).has_value());
}

TEST(BusiestLink, OfATreeIsAPortOrAnUplinkByItsRate) {
  const auto busiest = [](const char* algorithm, std::vector<std::uint64_t> rates,
                          CollectiveKind kind = CollectiveKind::all_reduce) {
    const auto tree = control::parse_topology("tree:4x4", "test").with_rates(rates);
    return busiest_link(control::make_plan(algorithm, tree, "test"), kind).value();
  };
  EXPECT_EQ(busiest("ring", {100, 400}).level, 0u);
  EXPECT_DOUBLE_EQ(busiest("ring", {100, 400}).share, 2 * 15.0 / 16);
  EXPECT_EQ(busiest("ring", {100, 50}).level, 1u);
  EXPECT_DOUBLE_EQ(busiest("ring", {100, 50}).share, 2 * 15.0 / 16);
  EXPECT_EQ(busiest("blueconnect", {100, 50}).level, 1u);
  EXPECT_DOUBLE_EQ(busiest("blueconnect", {100, 50}).share, 1.5);
  EXPECT_DOUBLE_EQ(busiest("blueconnect", {100, 50}, CollectiveKind::all_gather).share, 0.75);
  EXPECT_DOUBLE_EQ(busiest("mesh", {100, 100}).share, 2 * 4 * 12.0 / 16);
  EXPECT_EQ(busiest("mesh", {0, 0}).level, 0u) << "uplinks that are not limited bind nobody";
}

TEST(PerfCollective, HasTheRightArticle) {
  EXPECT_EQ(with_article(CollectiveKind::all_reduce), "an all-reduce");
  EXPECT_EQ(with_article(CollectiveKind::all_gather), "an all-gather");
  EXPECT_EQ(with_article(CollectiveKind::reduce), "a reduce");
}

TEST(BusiestLink, OfRingsOnATorusIsACableInOneDirection) {
  const auto share = [](const char* spec, const char* algorithm, CollectiveKind kind) {
    return busiest_link(plan_on(spec, {}, algorithm), kind).value().share;
  };
  EXPECT_DOUBLE_EQ(share("torus:3,2", "hips:ring", CollectiveKind::all_reduce), 8.0 / 18);
  EXPECT_DOUBLE_EQ(share("torus:4,2", "hips:ring", CollectiveKind::all_gather), 15.0 / 64);
  EXPECT_DOUBLE_EQ(share("torus:3,1", "blueconnect", CollectiveKind::all_reduce), 4.0 / 3);
  // Where servers relay it is not known.
  for (const char* algorithm : {"hips:mesh", "mesh", "hips:ring,mesh", "ps"}) {
    EXPECT_FALSE(busiest_link(plan_on("torus:4,2", {}, algorithm), CollectiveKind::all_reduce))
        << algorithm;
  }
  EXPECT_FALSE(
      busiest_link(plan_on("torus:4,1", {0, 1, 2}, "hips:ring"), CollectiveKind::all_reduce));
}

}  // namespace
}  // namespace gradcube::cli
