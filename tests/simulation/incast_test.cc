// Many senders to one receiver through a switch port whose queue is short. What a receiver grants
// fits into the queue, so nothing is dropped, whoever sends when.

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/simulation/work.h"

namespace gradcube::simulation {
namespace {

struct IncastCase {
  unsigned senders;
  const char* mtu;
};

class Incast : public testing::TestWithParam<IncastCase> {
 protected:
  // All servers send what they have to server 0, which is rank 0.
  Incast() {
    collective_.kind = control::CollectiveKind::reduce;
    collective_.count = 200'000;
  }

  SimulationSettings settings(std::uint64_t seed) const {
    SimulationSettings settings =
        settings_of({{"topology", "star:" + std::to_string(GetParam().senders + 1)},
                     {"rate", "1gbit"},
                     {"mtu", GetParam().mtu},
                     {"queue", "64K"}});
    settings.seed = seed;
    settings.lcores = 2;
    return settings;
  }
  void run_to_the_end(SimulatedCluster& cluster, const Trainers& trainers) {
    EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
    expect_right(cluster, trainers, collective_);
  }
  static void expect_no_drop(SimulatedCluster& cluster) {
    EXPECT_EQ(cluster.switch_counts().dropped_queue, 0u);
    EXPECT_LE(cluster.switch_counts().queue_peak_bytes, 64'000u);
  }

  Collective collective_;
};

TEST_P(Incast, OverflowsNoQueueWhileSendersAreInStep) {
  SimulatedCluster cluster(settings(1));
  const Trainers trainers = cluster.join_all("incast", heap_for(collective_));
  for (unsigned i = 0; i < 2; ++i) {
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective_);
    run_to_the_end(cluster, trainers);
  }
  expect_no_drop(cluster);
  EXPECT_EQ(cluster.counters().resent, 0u);
  leave_all(cluster, trainers);
}

TEST_P(Incast, OverflowsNoQueueWhileSendersAreOutOfStep) {
  SimulationSettings stalling = settings(2);
  stalling.stalls = 0.002;
  SimulatedCluster cluster(stalling);
  const Trainers trainers = cluster.join_all("incast", heap_for(collective_));
  for (unsigned i = 0; i < 2; ++i) {
    for (const auto& trainer : trainers) {
      fill_and_submit(*trainer, collective_);
      cluster.run_for(50'000);
    }
    run_to_the_end(cluster, trainers);
  }
  expect_no_drop(cluster);
  leave_all(cluster, trainers);
}

TEST_P(Incast, OverflowsNoQueueWhenTheReceiverIsLate) {
  SimulatedCluster cluster(settings(3));
  const Trainers trainers = cluster.join_all("incast", heap_for(collective_));
  for (const auto& trainer : trainers) {
    if (trainer != trainers.front()) fill_and_submit(*trainer, collective_);
  }
  cluster.run_for(20 * kMillisecond);
  fill_and_submit(*trainers.front(), collective_);
  run_to_the_end(cluster, trainers);
  expect_no_drop(cluster);
  leave_all(cluster, trainers);
}

TEST_P(Incast, OverflowsNoQueueWhenJobsConverge) {
  SimulatedCluster cluster(settings(4));
  std::vector<Trainers> jobs;
  for (const char* name : {"one", "two", "three"}) {
    jobs.push_back(cluster.join_all(name, heap_for(collective_)));
  }
  for (const Trainers& trainers : jobs) {
    for (const auto& trainer : trainers) fill_and_submit(*trainer, collective_);
  }
  for (const Trainers& trainers : jobs) run_to_the_end(cluster, trainers);
  expect_no_drop(cluster);
  for (const Trainers& trainers : jobs) leave_all(cluster, trainers);
}

// What small collectives send unasked comes on top of what is granted to a large one.
TEST_P(Incast, OverflowsNoQueueWhenManySmallJobsConvergeOnALargeOne) {
  SimulatedCluster cluster(settings(5));
  const Trainers large = cluster.join_all("large", heap_for(collective_));
  Collective small = collective_;
  small.count = 100 * cluster.servers();
  std::vector<Trainers> jobs;
  for (unsigned job = 0; job < 8; ++job) {
    jobs.push_back(cluster.join_all("small-" + std::to_string(job), heap_for(small)));
  }
  for (const auto& trainer : large) fill_and_submit(*trainer, collective_);
  for (unsigned round = 0; round < 2; ++round) {
    for (const Trainers& trainers : jobs) {
      for (const auto& trainer : trainers) fill_and_submit(*trainer, small);
    }
    for (const Trainers& trainers : jobs) {
      EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
      expect_right(cluster, trainers, small);
    }
  }
  run_to_the_end(cluster, large);
  expect_no_drop(cluster);
  for (const Trainers& trainers : jobs) leave_all(cluster, trainers);
  leave_all(cluster, large);
}

std::vector<IncastCase> incast_cases() {
  if (std::getenv("GRADCUBE_TEST_DEEP") == nullptr) return {{8, "9000"}, {24, "9000"}, {8, "1500"}};
  return {{8, "9000"}, {16, "9000"}, {24, "9000"}, {8, "1500"}, {24, "1500"}};
}

INSTANTIATE_TEST_SUITE_P(Senders, Incast, testing::ValuesIn(incast_cases()), [](const auto& info) {
  return "Of" + std::to_string(info.param.senders) + "AtMtu" + info.param.mtu;
});

}  // namespace
}  // namespace gradcube::simulation
