// Clusters some of whose servers are absent: collectives end with the right bits whatever the links
// do, no frame goes to an address without a server, and nobody is waited for there.

#include <algorithm>
#include <string>
#include <string_view>

#include "control/plan/algorithms.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

struct Part {
  const char* topology;
  const char* absent;
};

constexpr Part kParts[] = {{"bcube:4,2", "3,1 3,2 3,3"}, {"bcube:3,2", "0,0"},
                           {"bcube:2,3", "0,1,1 1,0,0"}, {"star:4", "2"},
                           {"bcube:2,2", "1,1"},         {"torus:3,2", "1,1 2,0"}};

SimulationSettings part_of(const Part& part) {
  SimulationSettings settings =
      settings_of({{"topology", part.topology}, {"absent", part.absent}, {"mtu", "1500"}});
  settings.messages_pass_the_fabric = true;
  return settings;
}

// Of a job that asks for this algorithm; the cluster's default if it is empty.
Trainers join_with(SimulatedCluster& cluster, const std::string& algorithm, std::uint64_t heap) {
  Trainers trainers = cluster.join_all("part", heap, algorithm);
  EXPECT_TRUE(cluster.run_until(
      [&] {
        return std::all_of(trainers.begin(), trainers.end(),
                           [](const auto& trainer) { return trainer->admitted(); });
      },
      10 * kSecond));
  return trainers;
}

TEST(AbsentServers, DoNotKeepCollectivesFromBeingRightOverLinksWithFaults) {
  for (const Part& part : kParts) {
    for (const char* algorithm : {"", "ring", "mesh", "ps"}) {
      SCOPED_TRACE(std::string(part.topology) + " without " + part.absent + ", " + algorithm);
      SimulationSettings settings = part_of(part);
      settings.cluster.loss = 0.02;
      settings.cluster.duplicate = 0.02;
      settings.cluster.reorder = 0.05;
      settings.cluster.corrupt = 0.01;
      SimulatedCluster cluster(settings);
      const std::string_view name =
          *algorithm == '\0' ? std::string_view(cluster.plan().algorithm()) : algorithm;
      const control::Plan plan = control::make_plan(name, cluster.plan().topology(), "test");
      Collective collective;
      collective.count = 20'011;
      const Trainers trainers = join_with(cluster, algorithm, heap_for(collective));
      for (unsigned i = 0; i < 2; ++i) allreduce(cluster, plan, trainers, collective);
      leave_all(cluster, trainers);
    }
  }
}

TEST(AbsentServers, AreSentNothingAndNotFoundToBeDown) {
  SimulationSettings settings = part_of(kParts[0]);
  settings.links_are_watched = true;
  settings.cluster.greeting_ns = 10 * kMillisecond;
  SimulatedCluster cluster(settings);
  Collective collective;
  collective.count = 100'003;
  const Trainers trainers = join_with(cluster, "", heap_for(collective));
  cluster.run_for(kSecond);
  allreduce(cluster, trainers, collective);
  const bcube::AddressSpace& space = cluster.plan().space();
  for (const bcube::ServerId server : cluster.nodes().servers()) {
    EXPECT_TRUE(space.contains(server));
    for (unsigned level = 0; level < space.levels(); ++level) {
      for (unsigned digit = 0; digit < space.radix(level); ++digit) {
        const bcube::Hop link{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
        EXPECT_TRUE(cluster.nodes().at(server).engines().links().up(link)) << space.text(server);
      }
    }
  }
  EXPECT_EQ(cluster.nodes().servers().size(), 13u);
  for (const auto& fabric : cluster.cluster().emulated().switches()) {
    dataplane::SwitchPortCounts counts;
    for (std::uint16_t port = 0; port < fabric.fabric->ports(); ++port) {
      add_counters(counts, fabric.fabric->counts(port));
    }
    EXPECT_EQ(counts.unknown_mac, 0u) << fabric.name;
  }
  leave_all(cluster, trainers);
}

// One link in five goes down in mid-collective, one after the other.
TEST(AbsentServers, LeaveWaysAroundLinksThatFail) {
  SimulationSettings settings = part_of({"bcube:4,2", "3,2 3,3"});
  settings.links_are_watched = true;
  settings.cluster.greeting_ns = 10 * kMillisecond;
  settings.cluster.rates = control::LinkRates(1'000'000'000);
  SimulatedCluster cluster(settings);
  Collective collective;
  collective.count = 200'003;
  const Trainers trainers = join_with(cluster, "", heap_for(collective));
  allreduce(cluster, trainers, collective);
  dataplane::EmbeddedFabric& fabric = cluster.cluster().emulated();
  const auto set_up = [&](const dataplane::EmbeddedFabric::LinkAt& link, bool up) {
    fabric.change_impairments({link}, [up](dataplane::Impairments impairments) {
      impairments.up = up;
      return impairments;
    });
  };
  for (std::size_t i = 0; i < fabric.links().size(); i += 5) {
    const auto link = fabric.links()[i];
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
    cluster.run_for(2 * kMillisecond);
    set_up(link, false);
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 5 * kSecond))
        << cluster.plan().space().text(link.server) << ":" << link.level;
    expect_right(cluster, trainers, collective);
    set_up(link, true);
    cluster.run_for(3 * kSecond);
  }
  leave_all(cluster, trainers);
}

}  // namespace
}  // namespace gradcube::simulation
