// `gradcube model merge`: what it prints, and what it refuses. What the policies merge is tested in
// tests/unit/control/merge/.
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "tests/unit/cli/command_line_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;

class ModelMerge : public CommandLine {
 protected:
  // Of `gradcube model merge --profile FILE ...`.
  std::string output(std::string_view text, const std::vector<std::string>& options) {
    std::vector<std::string> arguments = {"model", "merge", "--profile", profile(text)};
    arguments.insert(arguments.end(), options.begin(), options.end());
    const Outcome outcome = gradcube(arguments);
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    EXPECT_THAT(outcome.err, testing::IsEmpty());
    return outcome.out;
  }

  void refuse(std::string_view text, const std::string& what) {
    expect_usage_error({"model", "merge", "--profile", profile(text)}, what);
  }

  std::string profile(std::string_view text) {
    const std::filesystem::path path = root_ / "profile.json";
    std::ofstream(path) << text;
    return path.string();
  }
};

std::string with_layers(std::string_view list) {
  return fmt::format(R"({{"alpha":1,"beta":1,"layers":{}}})", list);
}

// What Algorithm 1 takes is 9, and the least is 8 (docs/mg-wfbp.md).
constexpr std::string_view kThreeLayers =
    R"({"alpha":2,"beta":1,"layers":[{"bytes":1,"backward_seconds":2},)"
    R"({"bytes":1,"backward_seconds":1},{"bytes":1,"backward_seconds":1}]})";

TEST_F(ModelMerge, SaysWhichLayersToSendAsOneMessage) {
  EXPECT_EQ(json::parse(output(kThreeLayers, {"--json"})), json::parse(R"(
      {"policies":[{"policy":"wfbp","merged":[[3],[2],[1]],"iteration_seconds":10},
                   {"policy":"synceasgd","merged":[[1,2,3]],"iteration_seconds":9},
                   {"policy":"mgwfbp","merged":[[2,3],[1]],"iteration_seconds":9},
                   {"policy":"optimal","merged":[[3],[1,2]],"iteration_seconds":8}]})"));
  EXPECT_EQ(output(kThreeLayers, {"--policy", "optimal"}),
            "# 3 layers, 3 B; an all-reduce of M bytes takes 2 s + 1e+09 ns * M; the forward "
            "pass takes 0 s, the backward pass 4 s\n"
            "policy   messages  iteration  relative  exposed  layers of each message\n"
            "optimal         2        8 s     1.000      4 s  3 1-2\n");
}

TEST_F(ModelMerge, TakesTheForwardPassOfAProfileAndIgnoresFieldsThatItDoesNotKnow) {
  const json answer =
      json::parse(output(R"({"network":"mine","alpha":0,"beta":0,"forward_seconds":0.5,)"
                         R"("layers":[{"name":"fc","bytes":4e3,"backward_seconds":0.25}]})",
                         {"--json"}));
  for (const json& row : answer["policies"]) EXPECT_EQ(row["iteration_seconds"], 0.75);
}

TEST_F(ModelMerge, SaysWhatIsWrongWithAProfile) {
  refuse("", "it cannot be read, or is empty");
  refuse("{", "it is no JSON");
  refuse("[]", "it is no profile");
  refuse(R"({"beta":1,"layers":[]})", "\"alpha\" is no time in seconds");
  refuse(R"({"alpha":1,"beta":-1})", "\"beta\" is no time in seconds");
  refuse(R"({"alpha":1,"beta":1e300})", "\"beta\" is no time in seconds");
  refuse(R"({"alpha":1,"beta":1,"forward_seconds":"1"})", "\"forward_seconds\" is no time");
  refuse(with_layers("[]"), "\"layers\" is no list with a layer");
  refuse(with_layers("{}"), "\"layers\" is no list with a layer");
  refuse(with_layers("[7]"), "layer 1: \"bytes\" is no whole number");
  refuse(with_layers(R"([{"bytes":0,"backward_seconds":1}])"),
         "add its time to the layer before it");
  refuse(with_layers(R"([{"bytes":1.5,"backward_seconds":1}])"), "layer 1: \"bytes\"");
  refuse(with_layers(R"([{"bytes":1e18,"backward_seconds":1}])"), "layer 1: \"bytes\"");
  refuse(with_layers(R"([{"bytes":1,"backward_seconds":1},{"bytes":1}])"),
         "layer 2: \"backward_seconds\" is no time in seconds");
  std::string many = R"([{"bytes":1,"backward_seconds":0})";
  for (int i = 0; i < 10'000; ++i) many += R"(,{"bytes":1,"backward_seconds":0})";
  refuse(with_layers(many + "]"), "\"layers\" has 10001 layers, but at most 10000 can be merged");
  expect_usage_error({"model", "merge", "--profile", "/none/such"}, "it cannot be read");
  expect_usage_error({"model", "merge"}, "--profile is missing");
  expect_usage_error({"model", "merge", "--profile", profile(kThreeLayers), "--policy", "best"},
                     "expected all, wfbp, synceasgd, mgwfbp, optimal");
}

}  // namespace
}  // namespace gradcube::cli
