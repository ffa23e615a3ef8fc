#include "tests/unit/control/job_simulation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace gradcube::control {
namespace {

// GRADCUBE_SEED=N runs that seed alone.
void run_seeds(std::uint64_t first, unsigned count, SimulationOptions options, unsigned* resets,
               unsigned* unknown) {
  const char* wanted = std::getenv("GRADCUBE_SEED");
  if (wanted != nullptr) {
    first = std::strtoull(wanted, nullptr, 10);
    count = 1;
  }
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    JobSimulation simulation(seed, options);
    const auto complaints = simulation.run();
    *resets += simulation.resets();
    *unknown += simulation.common_unknown();
    ASSERT_TRUE(complaints.empty()) << "seed " << seed << ": " << fmt::format("{}", complaints);
  }
}

TEST(JobSimulation, EndsEveryCollectiveAlikeWhenTrainersDisagreeAndMessagesAreLost) {
  unsigned resets = 0;
  unsigned unknown = 0;
  run_seeds(1, 500, {true, true, false, false}, &resets, &unknown);
  EXPECT_GT(resets, 0u);
  EXPECT_EQ(unknown, 0u);
}

TEST(JobSimulation, EndsEveryCollectiveAlikeOnAPerfectNetwork) {
  unsigned resets = 0;
  unsigned unknown = 0;
  run_seeds(1001, 200, {false, true, false, false}, &resets, &unknown);
  EXPECT_GT(resets, 0u);
  EXPECT_EQ(unknown, 0u);
}

TEST(JobSimulation, TellsAllSurvivorsTheSameNumberWhenTrainersGo) {
  unsigned resets = 0;
  unsigned unknown = 0;
  run_seeds(2001, 500, {true, true, true, false}, &resets, &unknown);
}

TEST(JobSimulation, EndsEveryRunWhateverHappensToDaemonsAndLinks) {
  unsigned resets = 0;
  unsigned unknown = 0;
  run_seeds(3001, 800, {true, true, true, true}, &resets, &unknown);
}

}  // namespace
}  // namespace gradcube::control
