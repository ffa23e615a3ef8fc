// What lanes and jobs do to each other on the same links.

#include <string>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

Trainers join(SimulatedCluster& cluster, const std::string& job, const control::JobOptions& options,
              std::uint64_t heap_bytes) {
  Trainers trainers;
  for (bcube::ServerId server = 0; server < cluster.servers(); ++server) {
    dataplane::TrainerRequest request{job, 1000 + server};
    request.heap_bytes = heap_bytes;
    request.options = options;
    trainers.push_back(cluster.join(server, request));
  }
  return trainers;
}

// Whether every trainer has ended so many collectives.
bool have_ended(const Trainers& trainers, std::uint64_t collectives) {
  for (const auto& trainer : trainers) {
    if (trainer->header().completion_tail.load() < collectives) return false;
  }
  return true;
}

TEST(Lanes, DoNotWaitForEachOther) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}}));
  control::JobOptions options;
  options.lanes.resize(2);
  const Trainers trainers = join(cluster, "lanes", options, 1 << 16);
  Collective stuck;
  stuck.count = 100;
  Collective other = stuck;
  other.offset += 1024;
  other.lane = 1;
  std::vector<std::uint64_t> names;
  for (const auto& trainer : trainers) {
    if (trainer->rank() != 2) fill_and_submit(*trainer, stuck);
    names.push_back(fill_and_submit(*trainer, other));
  }
  ASSERT_TRUE(cluster.run_until([&] { return have_ended(trainers, 1); }, kSecond));
  for (const auto& trainer : trainers) {
    const auto completions = trainer->take_completions();
    ASSERT_EQ(completions.size(), 1u);
    EXPECT_EQ(completions[0].request, names[trainer->rank()]);
  }
  expect_right(cluster, trainers, other);
  fill_and_submit(*trainers[2], stuck);
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, kSecond));
  expect_right(cluster, trainers, stuck);
  leave_all(cluster, trainers);
}

TEST(Lanes, OfHigherPriorityOvertakeWhatIsInFlight) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}, {"rate", "200mbit"}}));
  control::JobOptions options;
  options.lanes = {{"", 0}, {"", 1}};
  Collective large;
  large.count = 500'000;
  Collective urgent = large;
  urgent.count = 50'000;
  urgent.lane = 1;
  urgent.offset += heap_for(large) / 4096 * 4096;
  const Trainers trainers = join(cluster, "lanes", options, heap_for(large) + heap_for(urgent));
  for (const auto& trainer : trainers) fill_and_submit(*trainer, large);
  cluster.run_for(5 * kMillisecond);
  const std::int64_t begin = cluster.now();
  for (const auto& trainer : trainers) fill_and_submit(*trainer, urgent);
  ASSERT_TRUE(cluster.run_until([&] { return have_ended(trainers, 1); }, 10 * kSecond));
  const std::int64_t urgent_took = cluster.now() - begin;
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 10 * kSecond));
  const std::int64_t all_took = cluster.now() - begin;
  expect_right(cluster, trainers, large);
  expect_right(cluster, trainers, urgent);
  // Alone it takes a tenth of what the large one takes.
  EXPECT_LT(urgent_took, all_took / 4);
  leave_all(cluster, trainers);
}

TEST(Weights, ShareTheLinksAmongTheJobs) {
  SimulatedCluster cluster(settings_of({{"topology", "star:3"}, {"rate", "200mbit"}}));
  Collective collective;
  collective.count = 500'000;
  control::JobOptions options;
  const Trainers light = join(cluster, "light", options, heap_for(collective));
  options.weight = 3;
  const Trainers heavy = join(cluster, "heavy", options, heap_for(collective));
  const std::int64_t begin = cluster.now();
  for (const auto& trainer : light) fill_and_submit(*trainer, collective);
  for (const auto& trainer : heavy) fill_and_submit(*trainer, collective);
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(heavy); }, 10 * kSecond));
  const auto heavy_took = static_cast<double>(cluster.now() - begin);
  ASSERT_TRUE(cluster.run_until([&] { return all_idle(light); }, 10 * kSecond));
  const auto all_took = static_cast<double>(cluster.now() - begin);
  // With three quarters of the links the heavy job would end after two thirds of the time. It does
  // not always have something to send, because results wait for sums. Of equal weight, both would
  // end at about the same time.
  EXPECT_GT(heavy_took / all_took, 0.6);
  EXPECT_LT(heavy_took / all_took, 0.85);
  expect_right(cluster, light, collective);
  expect_right(cluster, heavy, collective);
  leave_all(cluster, light);
  leave_all(cluster, heavy);
}

}  // namespace
}  // namespace gradcube::simulation
