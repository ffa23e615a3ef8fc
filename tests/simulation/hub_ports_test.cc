// Hubs of an aggregator that has ports of its own, PHub's PBox: its ports carry what the plan says,
// and carry it once.

#include <array>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "control/hub/aggregator_plan.h"
#include "control/hub/hub_model.h"
#include "tests/simulation/hub_job.h"
#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

constexpr unsigned kWorkers = 8;
constexpr unsigned kPortRounds = 3;
constexpr std::uint64_t kChunk = 32'768;

// 1.1 MB, as uneven as layers are.
std::vector<control::HubKey> uneven_keys() {
  constexpr auto kType = aggregation::DataType::float32;
  return {{"a", 64, kType}, {"b", 120'000, kType}, {"c", 90'001, kType}, {"d", 65'000, kType}};
}

std::uint64_t bytes_of_keys() {
  std::uint64_t bytes = 0;
  for (const control::HubKey& key : uneven_keys()) bytes += key.bytes();
  return bytes;
}

struct Measured {
  double model_times = 0;               // of a round: how often a worker's link passes the model
  std::vector<std::uint64_t> received;  // by port of the aggregator, in a round
  std::uint64_t resent = 0;
};

Measured measured(const std::string& topology, const std::string& rate,
                  bcube::ServerId aggregator) {
  SimulatedCluster cluster(settings_of({{"topology", topology}, {"rate", rate}}));
  HubJob job(cluster, uneven_keys(), "sgd:lr=0.1", "", {aggregator}, 1, kChunk);
  job.make();
  push_first(job);
  const auto received = [&] {
    std::vector<std::uint64_t> bytes;
    for (dataplane::Port* port : cluster.cluster().emulated().ports(aggregator)) {
      bytes.push_back(port->counts().received_bytes);
    }
    return bytes;
  };
  const std::vector<std::uint64_t> before = received();
  const std::int64_t begin = cluster.now();
  for (unsigned round = 1; round <= kPortRounds; ++round) push_gradients(job, round);
  Measured result{.received = received(), .resent = cluster.counters().resent};
  result.model_times = static_cast<double>(cluster.now() - begin) * 1e-9 / kPortRounds * 200e6 /
                       (8 * static_cast<double>(bytes_of_keys()));
  for (std::size_t port = 0; port < before.size(); ++port) {
    result.received[port] = (result.received[port] - before[port]) / kPortRounds;
  }
  EXPECT_EQ(cluster.switch_counts().dropped_queue, 0U);
  job.end();
  leave_all(cluster, job.trainers());
  return result;
}

// A busy host makes timers end early for what is late; under a virtual clock nothing is.
TEST(HubPorts, LetNothingBeSentTwiceWhereNothingIsLost) {
  for (const char* rate : {"200mbit,server8=2gbit", "200mbit,server8=10x200mbit"}) {
    SCOPED_TRACE(rate);
    const Measured pbox = measured("star:9", rate, kWorkers);
    EXPECT_EQ(pbox.resent, 0U);
    EXPECT_GT(pbox.model_times, 1) << "a worker's link passes the model once each way";
  }
}

// Headers and acknowledgements are less than 2 % beside full frames.
TEST(HubPorts, CarryTheChunksThatThePlanBindsToThem) {
  const std::string rate = "200mbit,server8=3x800mbit";
  const control::Topology topology =
      settings_of({{"topology", "star:9"}, {"rate", rate}}).cluster.rated_topology();
  std::vector<bcube::ServerId> workers;
  for (bcube::ServerId server = 0; server < kWorkers; ++server) workers.push_back(server);
  const control::PlanChoice choice = control::hub::aggregated(
      topology, control::Placement::of(topology, workers, "test"), std::array{kWorkers}, "test");
  const control::Plan& plan = choice.plan(0);
  const auto keys = control::ordered_keys(uneven_keys(), "test");
  const std::vector<control::Lcore> lcores(1);
  const auto paths = control::hub::hub_paths(plan, lcores, {});
  const auto chunks = control::hub::cut_into_chunks(keys, kChunk, "test");
  const auto loads = control::hub::hub_loads(chunks, control::hub::bind_chunks(chunks, paths),
                                             paths, lcores.size());
  const auto planned = control::hub::port_bytes(plan, paths, loads.paths);
  ASSERT_TRUE(planned.has_value());
  const Measured pbox = measured("star:9", rate, kWorkers);
  ASSERT_EQ(planned->size(), 3U);
  ASSERT_EQ(pbox.received.size(), 3U);
  for (std::size_t port = 0; port < 3; ++port) {
    EXPECT_NEAR(static_cast<double>(pbox.received[port]) / (*planned)[port], 1, 0.02) << port;
  }
}

}  // namespace
}  // namespace gradcube::simulation
