// Hubs over links that go down, so that their flows take detours.

#include <gtest/gtest.h>
#include <vector>

#include "tests/simulation/hub_job.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

std::size_t unasked_flows(SimulatedCluster& cluster) {
  std::size_t flows = 0;
  for (const dataplane::EngineAt& at : cluster.cluster().engines()) {
    flows += at.engine->unasked_flows();
  }
  return flows;
}

TEST(HubLinks, ForgetTheFlowsOfAHubThatIsFreedWhileTheyTakeADetour) {
  SimulationSettings settings =
      settings_of({{"topology", "bcube:3,2"}, {"rate", "1gbit"}, {"greeting", "10ms"}});
  settings.links_are_watched = true;
  SimulatedCluster cluster(settings);
  HubJob job(cluster, {{"bias", 10, aggregation::DataType::float32}}, "sgd");
  job.make();
  push_first(job);
  ASSERT_GT(unasked_flows(cluster), 0U) << "what is short goes unasked";
  dataplane::EmbeddedFabric& fabric = cluster.cluster().emulated();
  const std::vector<dataplane::EmbeddedFabric::LinkAt> links = {fabric.links().front()};
  const auto set_up = [&](bool up) {
    fabric.change_impairments(links, [up](dataplane::Impairments impairments) {
      impairments.up = up;
      return impairments;
    });
  };
  set_up(false);
  ASSERT_TRUE(cluster.run_until([&] { return cluster.counters().reroutes > 0; }, kSecond));
  job.end();
  cluster.run_for(100 * kMillisecond);
  EXPECT_EQ(unasked_flows(cluster), 0U);
  set_up(true);
  job.make(2);
  push_first(job);
  push_gradients(job, 1);
  leave_all(cluster, job.trainers());
}

}  // namespace
}  // namespace gradcube::simulation
