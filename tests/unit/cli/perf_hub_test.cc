// The command lines of `gradcube perf hub` and `gradcube tune chunk`, as far as they need no
// cluster; tests/integration/hub_perf_test.py has the rest.
#include "cli/perf/perf_hub.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "control/base/errors.h"
#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class PerfHub : public CommandLine {
 protected:
  // Both commands measure a hub.
  void refuse(const std::vector<std::string>& options, const std::string& what) {
    for (std::vector<std::string> command :
         {std::vector<std::string>{"perf", "hub"}, std::vector<std::string>{"tune", "chunk"}}) {
      command.insert(command.end(), options.begin(), options.end());
      expect_usage_error(command, what);
    }
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

TEST(PerfHubParts, TakeWhatTheyAddToThoseBeforeThem) {
  const auto parts = hub_parts({1.0, 1.5, 1.25, 2.0});
  EXPECT_EQ(parts[0].name, "exchange");
  EXPECT_EQ(parts[0].seconds, 1.0);
  EXPECT_EQ(parts[1].name, "aggregation");
  EXPECT_EQ(parts[1].seconds, 0.5);
  EXPECT_EQ(parts[2].name, "optimizer");
  EXPECT_EQ(parts[2].seconds, -0.25);
  EXPECT_EQ(parts[3].name, "synchronization");
  EXPECT_EQ(parts[3].seconds, 0.75);
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

TEST_F(PerfHub, MeasuresTheBreakdownOfOneHubWithoutACheck) {
  expect_usage_error({"perf", "hub", "--breakdown", "--chunk", "32Ki,64Ki"}, "--breakdown");
  expect_usage_error({"perf", "hub", "--breakdown", "--check"}, "--breakdown");
  expect_usage_error({"perf", "hub", "--chunk", "100"}, "multiple of 64");
}

TEST_F(PerfHub, NeedsARunningCluster) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"perf", "hub"}, std::vector<std::string>{"tune", "chunk"}}) {
    const Outcome outcome = gradcube(command);
    EXPECT_EQ(outcome.code, 1);
    EXPECT_THAT(outcome.err, HasSubstr("gradcube up"));
  }
}

TEST_F(PerfHub, IsOneOfTheThingsThatPerfMeasures) {
  EXPECT_THAT(gradcube({"perf", "--help"}).out, HasSubstr("gradcube perf hub --help"));
  EXPECT_THAT(gradcube({"perf", "hub", "--help"}).out, HasSubstr("--breakdown"));
  expect_usage_error({"perf"}, "collective");
  expect_usage_error({"perf", "--check", "hub"}, "--check stands before");
  expect_usage_error({"perf", "allreduce", "hub"}, "collective stands before");
  expect_usage_error({"perf", "allreduce", "--boguz", "5"}, R"(there is no flag "--boguz")");
  expect_usage_error({"perf", "allreduce", "again"}, R"("again" is not expected)");
}

TEST_F(PerfHub, WhatToTuneIsNamed) {
  expect_usage_error({"tune"}, "expected chunk");
  expect_usage_error({"tune", "junk"},
                     R"(there is no command "tune junk"; the commands are chunk)");
}

}  // namespace
}  // namespace gradcube::cli
