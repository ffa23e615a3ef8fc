// Trees of switches in virtual time: an all-reduce is right, and takes about as long as the busiest
// of the servers' links and of the uplinks that they share; an oversubscribed uplink slows those
// alone whose messages pass it.

#include <algorithm>
#include <string>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/verify.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

constexpr const char* kServerRate = "100mbit";
// A receiver grants what its switch port's queue holds. With 128 KB that is less than the round
// trips over the uplinks need: a ring at oversubscription 2 takes 1.11 of its bound.
constexpr const char* kSwitchQueue = "256K";

Collective some_megabytes() {
  Collective collective;
  collective.count = 750'000;
  return collective;
}

// Of an all-reduce: what its busiest link needs at its rate, in nanoseconds.
double bound_of(const control::Plan& plan, const Collective& collective) {
  const control::VerifyReport report = control::verify(plan);
  double bound = 0;
  for (unsigned level = 0; level < plan.topology().link_levels(); ++level) {
    const double share = static_cast<double>(report.link_pieces[level]) / report.pieces;
    bound = std::max(bound, share * static_cast<double>(collective.bytes()) * 8e9 /
                                static_cast<double>(plan.topology().dimensions()[level].rate_bps));
  }
  return bound;
}

struct TreeCase {
  const char* name;
  const char* algorithm;
  const char* topology;
  const char* oversubscription;
  double most;  // of the bound
};

class Trees : public testing::TestWithParam<TreeCase> {};

TEST_P(Trees, TakeTheTimeOfTheBusiestLinkOrUplink) {
  SimulatedCluster cluster(settings_of({{"topology", GetParam().topology},
                                        {"rate", kServerRate},
                                        {"queue", kSwitchQueue},
                                        {"oversubscription", GetParam().oversubscription}}));
  const control::Plan plan =
      control::make_plan(GetParam().algorithm, cluster.plan().topology(), "test");
  const Collective collective = some_megabytes();
  const Trainers trainers = cluster.join_all("trees", heap_for(collective), GetParam().algorithm);
  const double bound = bound_of(plan, collective);
  const auto taken = static_cast<double>(allreduce(cluster, plan, trainers, collective));
  RecordProperty("of_the_bound", std::to_string(taken / bound));
  EXPECT_GT(taken, bound);
  EXPECT_LT(taken, GetParam().most * bound);
  leave_all(cluster, trainers);
}

INSTANTIATE_TEST_SUITE_P(
    Trees, Trees,
    testing::Values(TreeCase{"RingByRack", "ring", "tree:2x3", "1", 1.10},
                    // Uplinks as fast as one server's link carry the ring's one flow.
                    TreeCase{"RingByRackOverOneLink", "ring", "tree:2x3", "2", 1.10},
                    TreeCase{"RingByRackOverHalfALink", "ring", "tree:2x3", "4", 1.10},
                    TreeCase{"MeshOnAFatTree", "mesh", "tree:2x3", "1", 1.10},
                    TreeCase{"MeshOversubscribed", "mesh", "tree:2x3", "4", 1.10},
                    TreeCase{"BlueConnectOnAFatTree", "blueconnect", "tree:2x2", "1", 1.10},
                    TreeCase{"BlueConnectOversubscribed", "blueconnect", "tree:4x2", "4", 1.15},
                    TreeCase{"ThreeLevels", "blueconnect", "tree:2x2x2", "2", 1.25},
                    // The roots' ports and the uplinks need as long. With results behind all
                    // contributions it would take 1.6 of that.
                    TreeCase{"TwoLevel", "two-level", "tree:2x2", "4", 1.25},
                    TreeCase{"TwoLevelOfFourRacks", "two-level", "tree:4x4", "4", 1.20}),
    [](const auto& info) { return std::string(info.param.name); });

// Of a job on these servers of tree:2x2, in nanoseconds.
double time_on(const std::vector<bcube::ServerId>& members, const char* oversubscription) {
  SimulatedCluster cluster(settings_of(
      {{"topology", "tree:2x2"}, {"rate", kServerRate}, {"oversubscription", oversubscription}}));
  const Collective collective = some_megabytes();
  Trainers trainers;
  for (const bcube::ServerId server : members) {
    dataplane::TrainerRequest request{"part", 1000 + server};
    request.heap_bytes = heap_for(collective);
    request.options.members = members;
    trainers.push_back(cluster.join(server, request));
  }
  const control::Topology topology = cluster.plan().topology();
  const auto placement = control::Placement::of(topology, members, "test");
  const control::Plan plan = control::make_plan(control::default_algorithm(topology, placement),
                                                topology, placement, "test");
  const auto taken = static_cast<double>(allreduce(cluster, plan, trainers, collective));
  leave_all(cluster, trainers);
  return taken;
}

TEST(OversubscribedTrees, SlowThoseAloneWhoseMessagesPassUplinks) {
  const double under_one_switch = time_on({0, 1}, "1");
  EXPECT_NEAR(time_on({0, 1}, "8") / under_one_switch, 1, 0.01);
  EXPECT_NEAR(time_on({0, 2}, "1") / under_one_switch, 1, 0.1);
  // An uplink has a quarter of a server's link.
  EXPECT_NEAR(time_on({0, 2}, "8") / under_one_switch, 4, 0.4);
}

}  // namespace
}  // namespace gradcube::simulation
