#include "cli/launch/launch_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradcube::cli {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::Not;
using testing::StartsWith;

constexpr const char* kNothing[] = {nullptr};

const LaunchWorld kWorld{
    .servers = 4, .trainers_per_server = 3, .master = "127.0.0.1", .port = 4711, .run_id = "run-1"};
// The second one on the third server.
const PerfTrainer kTrainer{.rank = 7, .local = 1, .socket = "/run/server-1-0.sock"};

TEST(LaunchEnvironment, SaysWhoAProcessIs) {
  const auto variables = launch_environment(kNothing, kWorld, kTrainer);
  EXPECT_THAT(variables, Contains("RANK=7"));
  EXPECT_THAT(variables, Contains("WORLD_SIZE=12"));
  EXPECT_THAT(variables, Contains("LOCAL_RANK=1"));
  EXPECT_THAT(variables, Contains("LOCAL_WORLD_SIZE=3"));
  EXPECT_THAT(variables, Contains("GROUP_RANK=2"));
  EXPECT_THAT(variables, Contains("GROUP_WORLD_SIZE=4"));
  EXPECT_THAT(variables, Contains("ROLE_RANK=7"));
  EXPECT_THAT(variables, Contains("ROLE_WORLD_SIZE=12"));
}

TEST(LaunchEnvironment, SaysWhereTheOthersAre) {
  const auto variables = launch_environment(kNothing, kWorld, kTrainer);
  EXPECT_THAT(variables, Contains("MASTER_ADDR=127.0.0.1"));
  EXPECT_THAT(variables, Contains("MASTER_PORT=4711"));
  EXPECT_THAT(variables, Contains("GRADCUBE_SOCKET=/run/server-1-0.sock"));
  EXPECT_THAT(variables, Contains("TORCHELASTIC_RUN_ID=run-1"));
}

TEST(LaunchEnvironment, KeepsWhatIsSetButWhatAnotherLauncherSaid) {
  constexpr const char* kSet[] = {"HOME=/home/alice",       "EMPTY=",      "EQUATION=a=b", "RANK=0",
                                  "GRADCUBE_SOCKET=/other", "no variable", nullptr};
  const auto variables = launch_environment(kSet, kWorld, kTrainer);
  EXPECT_THAT(variables,
              AllOf(Contains("HOME=/home/alice"), Contains("EMPTY="), Contains("EQUATION=a=b")));
  EXPECT_THAT(variables, AllOf(Contains("RANK=7"), Not(Contains("RANK=0"))));
  EXPECT_THAT(variables, Contains(StartsWith("GRADCUBE_SOCKET=")).Times(1));
}

TEST(LaunchEnvironment, GivesEachProcessOneThreadAndUnbufferedLinesUnlessTheUserHasChosen) {
  EXPECT_THAT(launch_environment(kNothing, kWorld, kTrainer),
              AllOf(Contains("OMP_NUM_THREADS=1"), Contains("PYTHONUNBUFFERED=1")));
  constexpr const char* kChosen[] = {"OMP_NUM_THREADS=4", "PYTHONUNBUFFERED=", nullptr};
  EXPECT_THAT(launch_environment(kChosen, kWorld, kTrainer),
              AllOf(Contains("OMP_NUM_THREADS=4"), Not(Contains("OMP_NUM_THREADS=1")),
                    Contains("PYTHONUNBUFFERED=")));
}

}  // namespace
}  // namespace gradcube::cli
