// Servers that add up on more lcores than they have ports.

#include <string>

#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"

#include "gradcube/gradcube.h"

namespace gradcube::simulation {
namespace {

SimulationSettings settings_on(const std::string& topology, unsigned lcores) {
  SimulationSettings settings =
      settings_of({{"topology", topology}, {"server-lcores", std::to_string(lcores)}});
  settings.lcores = lcores;
  return settings;
}

TEST(ServerLcores, AllAddUp) {
  for (const char* topology : {"star:2", "star:5", "bcube:2,2", "torus:3,2"}) {
    SCOPED_TRACE(topology);
    SimulatedCluster cluster(settings_on(topology, 5));
    Collective collective;
    collective.count = 50'000;
    const Trainers trainers = cluster.join_all("wide", heap_for(collective));
    allreduce(cluster, trainers, collective);
    for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
      const auto& engines = cluster.cluster().engines(server);
      EXPECT_EQ(engines.size(), 5u);
      for (const dataplane::EngineAt& at : engines) {
        EXPECT_GT(at.engine->counters().segments_received, 0u);
      }
    }
    leave_all(cluster, trainers);
  }
}

// The expected bits are those of the plan that is not cut.
TEST(ServerLcores, LeaveTheBitsOfAMeshAsTheyAre) {
  SimulatedCluster cluster(settings_on("bcube:3,2", 5));
  const control::Plan whole =
      control::make_plan("bml", control::parse_topology("bcube:3,2", "test"), "test");
  ASSERT_NE(whole.threads(), cluster.plan().threads());
  for (const std::uint64_t count : {1U, 100U, 9'999U, 100'003U}) {
    Collective collective;
    collective.count = count;
    const Trainers trainers = cluster.join_all("bits", heap_for(collective), "bml");
    allreduce(cluster, whole, trainers, collective);
    leave_all(cluster, trainers);
  }
}

}  // namespace
}  // namespace gradcube::simulation
