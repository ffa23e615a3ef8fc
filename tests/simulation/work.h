// Helpers of the tests of particular situations: a cluster's settings from text, and one collective
// of all trainers, compared with the oracle.
#ifndef GRADCUBE_TESTS_SIMULATION_WORK_H_
#define GRADCUBE_TESTS_SIMULATION_WORK_H_

#include <algorithm>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/simulation/inputs.h"
#include "tests/simulation/simulated_cluster.h"

namespace gradcube::simulation {

inline constexpr std::int64_t kMillisecond = 1'000'000;
inline constexpr std::int64_t kSecond = 1'000'000'000;

using Trainers = std::vector<std::unique_ptr<SimulatedTrainer>>;

// Flags as for `gradcube up`: {"rate", "200mbit"}.
inline SimulationSettings settings_of(
    const std::vector<std::pair<std::string, std::string>>& flags) {
  SimulationSettings settings;
  for (const auto& [name, text] : flags) {
    control::apply_setting(settings.cluster, name, text, "--" + name);
  }
  return settings;
}

inline std::uint64_t heap_for(const Collective& collective) { return collective.bytes() + 4096; }

inline bool all_idle(const Trainers& trainers) {
  return std::all_of(trainers.begin(), trainers.end(),
                     [](const auto& trainer) { return trainer->idle(); });
}

// All collectives that have ended must have succeeded with the right bits, as the plan adds them.
inline void expect_right(const control::Plan& plan, const Trainers& trainers,
                         const Collective& collective) {
  Expected expected;
  for (const auto& trainer : trainers) {
    if (trainer == trainers.front() || differs_by_rank(collective.kind)) {
      expected = expected_result(plan, {}, collective, trainer->rank());
    }
    for (const shared::Completion& completion : trainer->take_completions()) {
      EXPECT_EQ(completion.code, 0);
    }
    EXPECT_EQ(wrong_elements(*trainer, collective, expected), 0u)
        << "elements, at server " << trainer->rank();
  }
}

inline void expect_right(const SimulatedCluster& cluster, const Trainers& trainers,
                         const Collective& collective) {
  expect_right(cluster.plan(), trainers, collective);
}

// One all-reduce by the plan; returns how long it took.
inline std::int64_t allreduce(SimulatedCluster& cluster, const control::Plan& plan,
                              const Trainers& trainers, const Collective& collective) {
  for (const auto& trainer : trainers) fill_and_submit(*trainer, collective);
  const std::int64_t begin = cluster.now();
  EXPECT_TRUE(cluster.run_until([&] { return all_idle(trainers); }, 60 * kSecond));
  const std::int64_t taken = cluster.now() - begin;
  expect_right(plan, trainers, collective);
  return taken;
}
inline std::int64_t allreduce(SimulatedCluster& cluster, const Trainers& trainers,
                              const Collective& collective) {
  return allreduce(cluster, cluster.plan(), trainers, collective);
}

// Of a test with a kind of collective as its parameter.
inline std::string kind_test_name(const testing::TestParamInfo<control::CollectiveKind>& info) {
  std::string name(control::collective_kind_name(info.param));
  std::erase(name, '-');
  return name;
}

// All trainers leave; then every packet must be back in its pool.
inline void leave_all(SimulatedCluster& cluster, const Trainers& trainers) {
  for (const auto& trainer : trainers) cluster.leave(*trainer, dataplane::Departure::orderly);
  EXPECT_TRUE(cluster.run_until([&] { return cluster.packets_in_use() == 0; }, kSecond))
      << cluster.packets_in_use() << " packets have leaked";
}

}  // namespace gradcube::simulation

#endif  // GRADCUBE_TESTS_SIMULATION_WORK_H_
