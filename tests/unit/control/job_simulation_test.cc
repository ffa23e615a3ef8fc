// GRADCUBE_SIMULATION_SEEDS says how many seeds all tests play together (2000); GRADCUBE_TEST_SEED
// plays one in each.
#include "tests/unit/control/job_simulation.h"

#include <cstdlib>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <tuple>

namespace gradcube::control {
namespace {

constexpr unsigned kSeeds = 2000;
constexpr unsigned kMostShown = 3;
constexpr SimulationOptions kCalm{};
constexpr SimulationOptions kPerfectNetwork{.message_faults = false};
constexpr SimulationOptions kTrainersGo{.trainer_faults = true};
constexpr SimulationOptions kAllFaults{.trainer_faults = true, .node_faults = true};
constexpr SimulationOptions kRejoins{.rejoins = true};
constexpr SimulationOptions kSomeLeave{.disagreements = false, .departures = true};

struct Sums {
  std::uint64_t runs = 0;
  unsigned resets = 0;
  unsigned ends = 0;
  unsigned unknown = 0;
  unsigned reports = 0;
};

// `share`: how many of the 2000.
Sums play(std::uint64_t first, unsigned share, const SimulationOptions& options) {
  const char* wanted = std::getenv("GRADCUBE_TEST_SEED");
  const char* total = std::getenv("GRADCUBE_SIMULATION_SEEDS");
  std::uint64_t count = share;
  if (total != nullptr) count = std::strtoull(total, nullptr, 0) * share / kSeeds + 1;
  if (wanted != nullptr) {
    first = std::strtoull(wanted, nullptr, 0);
    count = 1;
  }
  Sums sums;
  sums.runs = count;
  unsigned failed = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    JobSimulation simulation(seed, options);
    const auto complaints = simulation.run();
    sums.resets += simulation.resets();
    sums.ends += simulation.ends();
    sums.unknown += simulation.common_unknown();
    sums.reports += simulation.reports();
    if (complaints.empty() || ++failed > kMostShown) continue;
    ADD_FAILURE() << "GRADCUBE_TEST_SEED=" << seed << ": " << fmt::format("{}", complaints);
  }
  EXPECT_EQ(failed, 0u) << "of " << count << " seeds";
  return sums;
}

// In a few runs it need not happen.
void expect_some(unsigned count, const char* what, const Sums& sums) {
  if (sums.runs < 100) return;
  EXPECT_GT(count, 0u) << "no " << what << " in " << sums.runs << " runs";
}

TEST(JobSimulation, EndsEveryCollectiveAlikeWhenTrainersDisagreeAndMessagesAreLost) {
  const Sums sums = play(1, 400, kCalm);
  expect_some(sums.resets, "reset", sums);
  expect_some(sums.reports, "report", sums);
  EXPECT_EQ(sums.unknown, 0u);
}

TEST(JobSimulation, EndsEveryCollectiveAlikeOnAPerfectNetwork) {
  const Sums sums = play(100'000'001, 200, kPerfectNetwork);
  expect_some(sums.resets, "reset", sums);
  expect_some(sums.reports, "report", sums);
  EXPECT_EQ(sums.unknown, 0u);
}

TEST(JobSimulation, TellsAllSurvivorsTheSameNumberWhenTrainersGo) {
  const Sums sums = play(200'000'001, 400, kTrainersGo);
  expect_some(sums.ends, "end", sums);
  EXPECT_EQ(sums.unknown, 0u) << "all daemons live and hear each other: the number can be found";
}

TEST(JobSimulation, EndsEveryRunWhateverHappensToDaemonsAndLinks) {
  const Sums sums = play(300'000'001, 500, kAllFaults);
  expect_some(sums.ends, "end", sums);
}

TEST(JobSimulation, EndsAllThatDoesNotNeedTrainersThatHaveLeft) {
  const Sums sums = play(500'000'001, 300, kSomeLeave);
  expect_some(sums.resets, "reset", sums);
}

TEST(JobSimulation, GivesTrainersThatAllJoinAgainANewJob) {
  const Sums sums = play(400'000'001, 200, kRejoins);
  expect_some(sums.ends, "end", sums);
}

TEST(JobSimulation, RepeatsItselfForTheSameSeedOnly) {
  const auto trace = [](std::uint64_t seed) {
    JobSimulation simulation(seed, kAllFaults);
    simulation.run();
    return std::tuple(simulation.duration(), simulation.resets(), simulation.ends(),
                      simulation.reports());
  };
  EXPECT_EQ(trace(5), trace(5));
  EXPECT_NE(trace(5), trace(6));
}

}  // namespace
}  // namespace gradcube::control
