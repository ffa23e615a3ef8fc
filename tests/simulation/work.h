// Helpers of the tests of particular situations: one collective of all trainers, compared with the
// oracle.
#ifndef GRADCUBE_TESTS_SIMULATION_WORK_H_
#define GRADCUBE_TESTS_SIMULATION_WORK_H_

#include <gtest/gtest.h>
#include <string>

#include "tests/simulation/inputs.h"
#include "tests/simulation/trainers.h"

namespace gradcube::simulation {

inline std::uint64_t heap_for(const Collective& collective) { return collective.bytes() + 4096; }

// Of a job without wishes, the plan that runs the collective.
inline const control::Plan& plan_of(const SimulatedCluster& cluster, const Collective& collective) {
  return cluster.choice().plan_of(collective.kind, collective.bytes());
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
  expect_right(plan_of(cluster, collective), trainers, collective);
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
  return allreduce(cluster, plan_of(cluster, collective), trainers, collective);
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
