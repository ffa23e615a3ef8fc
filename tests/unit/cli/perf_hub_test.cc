// The command line of `gradcube perf hub`, as far as it needs no cluster;
// tests/integration/hub_perf_test.py has the rest.
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/perf/perf_commands.h"
#include "control/base/errors.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PerfHub : public CommandLine {
 protected:
  void refuse(const std::vector<std::string>& options, const std::string& what) {
    std::vector<std::string> command = {"perf", "hub"};
    command.insert(command.end(), options.begin(), options.end());
    expect_usage_error(command, what);
  }
};

TEST(PerfHubChunks, AreLengthsOrTheDefault) {
  EXPECT_THAT(parse_chunks("auto"), ElementsAre(0));
  EXPECT_THAT(parse_chunks("32Ki,auto,1Mi"), ElementsAre(32768, 0, 1048576));
}

TEST(PerfHubChunks, ThatNoHubCanHaveAreRefused) {
  for (const char* const text : {"", "0", "100", "8Mi", "32Ki,", ",32Ki", "32Ki;64Ki", "Auto"}) {
    EXPECT_THROW(parse_chunks(text), control::UsageError) << text;
  }
}

TEST_F(PerfHub, RefusesHubsThatThereAreNot) {
  refuse({"--network", "resnet51"}, R"(no network "resnet51"; expected googlenet, resnet50)");
  refuse({"--optimizer", "sgd:momentum=0.9"}, R"(--optimizer: sgd has no setting "momentum")");
  refuse({"--optimizer", "magic"}, R"(no optimizer "magic")");
  refuse({"--trainers", "0"}, "--trainers");
  refuse({"--iterations", "0"}, "--iterations");
  refuse({"--keys", "/nowhere.json"}, "/nowhere.json");
  refuse({"--keys", "k.json", "--network", "vgg19"}, "--network");
}

TEST_F(PerfHub, RefusesKeysThatAreNone) {
  const std::string path = (root_ / "keys.json").string();
  std::ofstream(path) << R"({"keys":[{"name":"a","elements":0,"dtype":"float32"}]})";
  refuse({"--keys", path}, "keys.json");
}

TEST_F(PerfHub, RefusesChunksThatNoHubCanHave) {
  expect_usage_error({"perf", "hub", "--chunk", "100"}, "multiple of 64");
}

TEST_F(PerfHub, NeedsARunningCluster) {
  const Outcome outcome = gradcube({"perf", "hub"});
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("gradcube up"));
}

TEST_F(PerfHub, IsOneOfTheThingsThatPerfMeasures) {
  EXPECT_THAT(gradcube({"perf", "--help"}).out, HasSubstr("gradcube perf hub --help"));
  EXPECT_THAT(gradcube({"perf", "hub", "--help"}).out, HasSubstr("--chunk"));
  expect_usage_error({"perf"}, "collective");
  expect_usage_error({"perf", "--check", "hub"}, "\"--check\" stands before");
  expect_usage_error({"perf", "allreduce", "hub"}, R"("hub" is not expected)");
  expect_usage_error({"perf", "allreduce", "--boguz", "5"}, R"(there is no flag "--boguz")");
  expect_usage_error({"perf", "allreduce", "again"}, R"("again" is not expected)");
}

}  // namespace
}  // namespace gradcube::cli
