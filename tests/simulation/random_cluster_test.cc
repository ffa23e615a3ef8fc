// Clusters drawn from seeds. GRADCUBE_SIMULATION_SEEDS says how many, GRADCUBE_TEST_SEED plays one.

#include <cstdio>
#include <cstdlib>
#include <gtest/gtest.h>
#include <set>

#include "tests/simulation/random_hub.h"
#include "tests/simulation/scenario.h"

namespace gradcube::simulation {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 0);
}

constexpr std::uint64_t kSeeds = 500;

TEST(RandomCluster, EndsEveryCollectiveRightOrWithTheRightErrorAndLosesNoPacket) {
  const bool replay = std::getenv("GRADCUBE_TEST_SEED") != nullptr;
  const std::uint64_t first = from_environment("GRADCUBE_TEST_SEED", 1);
  const std::uint64_t seeds = replay ? 1 : from_environment("GRADCUBE_SIMULATION_SEEDS", kSeeds);
  unsigned succeeded = 0;
  unsigned failed = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed) + " " + describe(scenario));
    if (replay) std::fprintf(stderr, "%s\n", describe(scenario).c_str());
    const Outcome outcome = play(scenario);
    for (const std::string& complaint : outcome.complaints) ADD_FAILURE() << complaint;
    succeeded += outcome.succeeded;
    failed += outcome.failed;
    if (replay) {
      std::fprintf(stderr, "virtual time %.3f ms, %u ended well, %u failed\n",
                   static_cast<double>(outcome.virtual_time) * 1e-6, succeeded, failed);
    }
  }
  if (!replay && seeds >= kSeeds) {
    EXPECT_GT(succeeded, failed) << "the scenarios have become too rough to show anything";
    EXPECT_GT(failed, 0u) << "the scenarios have become too tame to show anything";
  }
}

constexpr std::uint64_t kHubSeeds = 100;

TEST(RandomHub, HasTheWeightsOfTheStepsThatEndedWhateverBefallsItsJob) {
  const bool replay = std::getenv("GRADCUBE_TEST_SEED") != nullptr;
  const std::uint64_t first = from_environment("GRADCUBE_TEST_SEED", 1);
  const std::uint64_t seeds = replay ? 1 : from_environment("GRADCUBE_SIMULATION_SEEDS", kHubSeeds);
  unsigned succeeded = 0;
  unsigned failed = 0;
  for (std::uint64_t seed = first; seed < first + seeds; ++seed) {
    SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
    const Outcome outcome = play_hub(seed);
    for (const std::string& complaint : outcome.complaints) ADD_FAILURE() << complaint;
    succeeded += outcome.succeeded;
    failed += outcome.failed;
  }
  if (!replay && seeds >= kHubSeeds) {
    EXPECT_GT(succeeded, failed) << "too rough to show anything";
    EXPECT_GT(failed, 0u) << "too tame to show anything";
  }
}

TEST(RandomHub, RepeatsItselfToTheLastPacketFromTheSameSeed) {
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
    EXPECT_EQ(play_hub(seed).trace, play_hub(seed).trace);
  }
}

TEST(RandomCluster, RepeatsItselfToTheLastPacketFromTheSameSeedAndFromNoOther) {
  std::set<std::uint64_t> traces;
  for (std::uint64_t seed = 1002; seed < 1008; ++seed) {
    const Scenario scenario = draw_scenario(seed);
    SCOPED_TRACE("seed " + std::to_string(seed) + " " + describe(scenario));
    const std::uint64_t trace = play(scenario).trace;
    EXPECT_EQ(play(scenario).trace, trace);
    EXPECT_TRUE(traces.insert(trace).second) << "another seed has the same trace";
    // The same cluster and work, in another order of the pollers.
    Scenario reordered = scenario;
    ++reordered.simulation.seed;
    reordered.simulation.lcores = 2;
    EXPECT_TRUE(traces.insert(play(reordered).trace).second) << "the schedule leaves no trace";
  }
}

}  // namespace
}  // namespace gradcube::simulation
