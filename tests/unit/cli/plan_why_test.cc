// `gradcube plan --why`: what it prints, and what it refuses. The times are tested in
// tests/unit/control/plan_cost_test.cc.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class PlanWhy : public CommandLine {
 protected:
  json why(const std::string& size, std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), {"plan", "--why", size, "--json"});
    const Outcome outcome = gradcube(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return json::parse(outcome.out);
  }
};

TEST_F(PlanWhy, ListsEveryCandidateFromTheFastest) {
  const json answer = why("64M", {"--topology", "bcube:3,2", "--rate", "1gbit"});
  EXPECT_EQ(answer["bytes"], 64'000'000);
  EXPECT_EQ(answer["auto"], "bml");
  EXPECT_EQ(answer["running"], false);
  EXPECT_EQ(answer["topology"]["servers"], 9);
  std::set<std::string> names;
  double before = 0;
  for (const json& candidate : answer["candidates"]) {
    names.insert(candidate["algorithm"]);
    EXPECT_GE(candidate["seconds"], before);
    before = candidate["seconds"];
    EXPECT_DOUBLE_EQ(
        candidate["seconds"].get<double>(),
        candidate["latency_seconds"].get<double>() + candidate["transfer_seconds"].get<double>());
  }
  // Not halving_doubling: nine is no power of two.
  EXPECT_EQ(names,
            (std::set<std::string>{"bml", "blueconnect", "blueconnect:ring", "hips:mesh",
                                   "hips:ring", "hips:root", "mesh", "ps", "ring", "two-level"}));
}

TEST_F(PlanWhy, SaysWhatBinds) {
  const std::vector<std::string> place = {"--topology", "bcube:3,2", "--rate",
                                          "level0=1gbit,level1=100mbit"};
  EXPECT_EQ(why("16", place)["candidates"][0]["binds"], "latency");
  const json long_ones = why("64M", place);
  const auto& candidates = long_ones["candidates"];
  const auto mesh = std::find_if(candidates.begin(), candidates.end(),
                                 [](const json& each) { return each["algorithm"] == "mesh"; });
  ASSERT_NE(mesh, candidates.end());
  EXPECT_EQ((*mesh)["binds"], 1);
}

TEST_F(PlanWhy, PrintsATableThatMarksWhatAutoRuns) {
  const Outcome outcome = gradcube({"plan", "--why", "64M", "--rate", "1gbit"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out,
              StartsWith("# all-reduce of 64 MB on bcube:3,2, as no cluster is running: "
                         "auto:1us,40us runs bml\n"
                         "algorithm "));
  const auto line = outcome.out.find("\nbml ");
  ASSERT_NE(line, std::string::npos);
  const std::string bml = outcome.out.substr(line + 1, outcome.out.find('\n', line + 1) - line - 1);
  EXPECT_THAT(bml, testing::EndsWith(" auto"));
}

TEST_F(PlanWhy, TakesWhatAMessageCostsFromTheNameOfAuto) {
  const std::vector<std::string> place = {"--topology", "bcube:4,2", "--rate", "1gbit"};
  auto cheap = place, dear = place;
  cheap.insert(cheap.end(), {"--algorithm", "auto:0,0"});
  dear.insert(dear.end(), {"--algorithm", "auto:100us,1us,2us"});
  EXPECT_EQ(why("4K", cheap)["auto"], "bml");
  EXPECT_NE(why("4K", dear)["auto"], "bml");
  EXPECT_EQ(why("4K", dear)["costs"], "auto:100us,1us,2us");
}

TEST_F(PlanWhy, RefusesWhatItHasNoUseFor) {
  expect_usage_error({"plan", "--why", "64Q"}, "--why");
  expect_usage_error({"plan", "--why", ""}, "--why");
  expect_usage_error({"plan", "--why", "1M", "--server", "0,0"}, "--why");
  expect_usage_error({"plan", "--why", "1M", "--algorithm", "ring"}, "it compares all algorithms");
  expect_usage_error({"plan", "--why", "1M", "--algorithm", "auto:3us"}, "it lists 1 cost;");
  expect_usage_error({"plan", "--why", "1M", "--algorithm", "auto:"}, "it lists no costs;");
  expect_usage_error({"plan", "--why", "1M", "--algorithm", "auto:1,2,3,4"}, "it lists 4 costs;");
  expect_usage_error({"plan", "--why", "1M", "--trainers", "4"}, "--trainers");
  expect_usage_error({"plan", "--why", "1M", "--verify"}, "--verify");
  expect_usage_error({"plan", "--why", "1M", "--verify", "--seed", "7"}, "--why");
  expect_usage_error({"plan", "--why", "1M", "--topology", "bcube:16,4"}, "expected at most 4096");
  expect_usage_error({"plan", "--why", "1M", "--topology", "torus:2,2"}, "torus:2,2");
}

}  // namespace
}  // namespace gradcube::cli
