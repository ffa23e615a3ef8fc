// What an all-reduce takes in virtual time where links are the bottleneck, against what the plan
// brings to its fullest link: 5 % more at most, which has the headers of all frames in it (1.8 %),
// the acknowledgements, and the begin and the end, when not all links can be busy.

#include <algorithm>
#include <string>

#include "control/plan/algorithms.h"
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

// Of an all-reduce of 12 MB, in units of the time in which a link passes the gradient.
double relative_time(const char* algorithm, const char* topology) {
  constexpr double kRate = 200e6;
  SimulatedCluster cluster(
      settings_of({{"topology", topology}, {"rate", "200mbit"}, {"queue", kQueue}}));
  Collective collective;
  collective.count = 3'000'000;
  const control::Plan plan = control::make_plan(algorithm, cluster.plan().topology(), "test");
  dataplane::TrainerRequest request{"modelled", 1000, 1000, heap_for(collective)};
  request.options.lanes.resize(1);
  request.options.lanes[0].algorithm = algorithm;
  Trainers trainers;
  for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
    trainers.push_back(cluster.join(server, request));
  }
  const auto taken = static_cast<double>(allreduce(cluster, plan, trainers, collective));
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
  leave_all(cluster, trainers);
  return taken * kRate / (static_cast<double>(collective.bytes()) * 8e9);
}

struct Case {
  const char* name;
  const char* algorithm;
  const char* topology;
};

class ModelledTimes : public testing::TestWithParam<Case> {};

TEST_P(ModelledTimes, AreThoseOfTheFullestLink) {
  const Case& given = GetParam();
  const control::Plan plan =
      control::make_plan(given.algorithm, control::parse_topology(given.topology, "test"), "test");
  const double model = fullest_link(plan);
  const double taken = relative_time(given.algorithm, given.topology);
  RecordProperty("of_the_model", std::to_string(taken / model));
  EXPECT_GT(taken, model);
  EXPECT_LT(taken, 1.05 * model);
}

INSTANTIATE_TEST_SUITE_P(Plans, ModelledTimes,
                         testing::Values(Case{"Bml", "bml", "bcube:3,2"},
                                         Case{"MeshOfNine", "mesh", "bcube:3,2"},
                                         Case{"MeshOfSixteen", "mesh", "bcube:4,2"},
                                         Case{"MeshOnAStar", "mesh", "star:9"},
                                         Case{"RingOfNine", "ring", "bcube:3,2"},
                                         Case{"RingOfSixteen", "ring", "bcube:4,2"},
                                         Case{"RingOnAStar", "ring", "star:9"},
                                         Case{"HipsMesh", "hips:mesh", "bcube:4,2"},
                                         Case{"HipsRing", "hips:ring", "bcube:4,2"},
                                         Case{"ParameterServer", "ps", "star:4"}),
                         [](const auto& info) { return std::string(info.param.name); });

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
