#include "tests/unit/control/job_simulation.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <tuple>

namespace gradcube::control {
namespace {

struct Sums {
  unsigned resets = 0;
  unsigned ends = 0;
  unsigned unknown = 0;
};

// GRADCUBE_SEED=N runs that seed alone.
Sums run_seeds(std::uint64_t first, unsigned count, SimulationOptions options) {
  const char* wanted = std::getenv("GRADCUBE_SEED");
  if (wanted != nullptr) {
    first = std::strtoull(wanted, nullptr, 10);
    count = 1;
  }
  Sums sums;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    JobSimulation simulation(seed, options);
    const auto complaints = simulation.run();
    sums.resets += simulation.resets();
    sums.ends += simulation.ends();
    sums.unknown += simulation.common_unknown();
    EXPECT_TRUE(complaints.empty()) << "seed " << seed << ": " << fmt::format("{}", complaints);
    if (!complaints.empty()) break;
  }
  return sums;
}

TEST(JobSimulation, EndsEveryCollectiveAlikeWhenTrainersDisagreeAndMessagesAreLost) {
  const Sums sums = run_seeds(1, 500, {true, true, false, false});
  EXPECT_GT(sums.resets, 0u);
  EXPECT_EQ(sums.unknown, 0u);
}

TEST(JobSimulation, EndsEveryCollectiveAlikeOnAPerfectNetwork) {
  const Sums sums = run_seeds(1001, 200, {false, true, false, false});
  EXPECT_GT(sums.resets, 0u);
  EXPECT_EQ(sums.unknown, 0u);
}

TEST(JobSimulation, TellsAllSurvivorsTheSameNumberWhenTrainersGo) {
  const Sums sums = run_seeds(2001, 500, {true, true, true, false});
  EXPECT_GT(sums.ends, 0u);
  EXPECT_EQ(sums.unknown, 0u) << "all daemons live and hear each other: the number can be found";
}

TEST(JobSimulation, EndsEveryRunWhateverHappensToDaemonsAndLinks) {
  const Sums sums = run_seeds(3001, 800, {true, true, true, true});
  EXPECT_GT(sums.ends, 0u);
}

TEST(JobSimulation, RepeatsItselfForTheSameSeedOnly) {
  const auto trace = [](std::uint64_t seed) {
    JobSimulation simulation(seed, {true, true, true, true});
    simulation.run();
    return std::tuple(simulation.duration(), simulation.resets(), simulation.ends());
  };
  EXPECT_EQ(trace(5), trace(5));
  EXPECT_NE(trace(5), trace(6));
}

}  // namespace
}  // namespace gradcube::control
