// What an all-reduce takes in virtual time where links are the bottleneck, against what the plan
// brings to its fullest link: 5 % more at most, which has the headers of all frames in it (1.8 %),
// the acknowledgements, and the begin and the end, when not all links can be busy.

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/plan_cost.h"
#include "control/plan/verify.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

// A port's queue has room for the segments that are on their way over two hops and back.
constexpr const char* kQueue = "256K";

// Of the gradient: what the fullest link carries in both stages.
double fullest_link(const control::Plan& plan) {
  const control::VerifyReport report = control::verify(plan);
  return static_cast<double>(
             *std::max_element(report.link_pieces.begin(), report.link_pieces.end())) /
         report.pieces;
}

// Of an all-reduce, in seconds.
double time_of(const char* algorithm, const char* topology, const char* rate,
               const Collective& collective) {
  SimulatedCluster cluster(
      settings_of({{"topology", topology}, {"rate", rate}, {"queue", kQueue}}));
  const control::Plan plan = control::make_plan(algorithm, cluster.plan().topology(), "test");
  const Trainers trainers = cluster.join_all("modelled", heap_for(collective), algorithm);
  const auto taken = static_cast<double>(allreduce(cluster, plan, trainers, collective));
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  leave_all(cluster, trainers);
  return taken * 1e-9;
}

Collective of_bytes(std::uint64_t bytes) {
  Collective collective;
  collective.count = bytes / 4;
  return collective;
}

// Of an all-reduce of 12 MB, in units of the time in which a link passes the gradient. Several
// tests compare the same run.
double relative_time(const char* algorithm, const char* topology) {
  static std::map<std::pair<std::string, std::string>, double> known;
  const auto [at, is_new] = known.try_emplace({algorithm, topology});
  if (is_new) {
    const Collective collective = of_bytes(12'000'000);
    at->second = time_of(algorithm, topology, "200mbit", collective) * 200e6 /
                 (static_cast<double>(collective.bytes()) * 8);
  }
  return at->second;
}

struct Rated {
  const char* algorithm;
  const char* rate;
  double most;  // of the model
};

// On bcube:4,2, with nothing but bytes.
double cost_of(const Rated& rated, const Collective& collective) {
  const control::Topology topology =
      settings_of({{"topology", "bcube:4,2"}, {"rate", rated.rate}}).cluster.rated_topology();
  const control::Plan plan = control::make_plan(rated.algorithm, topology, "test");
  control::CostParameters parameters = control::cost_parameters(topology, {0, {0}});
  parameters.frame_bytes = 0;
  return control::PlanCost(plan)
      .time(collective.kind, static_cast<double>(collective.bytes()), parameters)
      .seconds();
}

struct ModelledCase {
  const char* name;
  const char* algorithm;
  const char* topology;
};

class ModelledTimes : public testing::TestWithParam<ModelledCase> {};

TEST_P(ModelledTimes, AreThoseOfTheFullestLink) {
  const ModelledCase& given = GetParam();
  const control::Plan plan =
      control::make_plan(given.algorithm, control::parse_topology(given.topology, "test"), "test");
  const double model = fullest_link(plan);
  const double taken = relative_time(given.algorithm, given.topology);
  RecordProperty("of_the_model", std::to_string(taken / model));
  EXPECT_GT(taken, model);
  EXPECT_LT(taken, 1.05 * model);
}

INSTANTIATE_TEST_SUITE_P(Plans, ModelledTimes,
                         testing::Values(ModelledCase{"Bml", "bml", "bcube:3,2"},
                                         ModelledCase{"MeshOfNine", "mesh", "bcube:3,2"},
                                         ModelledCase{"MeshOfSixteen", "mesh", "bcube:4,2"},
                                         ModelledCase{"MeshOnAStar", "mesh", "star:9"},
                                         ModelledCase{"RingOfNine", "ring", "bcube:3,2"},
                                         ModelledCase{"RingOfSixteen", "ring", "bcube:4,2"},
                                         ModelledCase{"RingOnAStar", "ring", "star:9"},
                                         ModelledCase{"HipsMesh", "hips:mesh", "bcube:4,2"},
                                         ModelledCase{"HipsRing", "hips:ring", "bcube:4,2"},
                                         ModelledCase{"ParameterServer", "ps", "star:4"}),
                         [](const auto& info) { return std::string(info.param.name); });

// With a level that is four or ten times as slow as the other, by the cost that `auto` goes by. Of
// few bytes the begin and the end are a large part.
TEST(RatedTimes, AreThoseOfThePlansCostWhereLevelsHaveOtherRates) {
  const std::array<Rated, 6> cases = {{{"blueconnect", "level0=200mbit,level1=50mbit", 1.25},
                                       {"blueconnect", "level0=200mbit,level1=20mbit", 1.15},
                                       {"blueconnect:ring", "level0=200mbit,level1=50mbit", 1.15},
                                       {"blueconnect:ring", "level0=200mbit,level1=20mbit", 1.15},
                                       {"bml", "level0=200mbit,level1=50mbit", 1.15},
                                       {"hips:mesh", "level0=200mbit,level1=20mbit", 1.15}}};
  const Collective collective = of_bytes(3'000'000);
  for (const Rated& rated : cases) {
    SCOPED_TRACE(std::string(rated.algorithm) + " with " + rated.rate);
    const double model = cost_of(rated, collective);
    const double taken = time_of(rated.algorithm, "bcube:4,2", rated.rate, collective);
    EXPECT_GT(taken, model);
    EXPECT_LT(taken, rated.most * model) << model;
  }
}

// HiPS, section 4.2: on BCube(4,2) it takes 37.5 % less than a flat mesh, and half of a flat ring.
TEST(Reductions, ByHipsAreAsThePaperSays) {
  const double hips_mesh = relative_time("hips:mesh", "bcube:4,2");
  const double mesh = relative_time("mesh", "bcube:4,2");
  EXPECT_NEAR(1 - hips_mesh / mesh, 0.375, 0.03);
  const double hips_ring = relative_time("hips:ring", "bcube:4,2");
  const double ring = relative_time("ring", "bcube:4,2");
  EXPECT_NEAR(1 - hips_ring / ring, 0.5, 0.03);
}

// BML, section 3.3: BCube(3,2) takes half of what PS takes, a balanced one, with links of the same
// rate.
TEST(Reductions, ByBmlAreAsThePaperSays) {
  EXPECT_NEAR(1 - relative_time("bml", "bcube:3,2") / relative_time("mesh", "star:9"), 0.5, 0.03);
}

}  // namespace
}  // namespace gradcube::simulation
