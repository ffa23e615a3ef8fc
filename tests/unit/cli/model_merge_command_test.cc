// `gradcube model merge`: what it prints, and what it refuses. What the policies merge is tested in
// tests/unit/control/merge/.
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <sys/stat.h>
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
    return CommandLine::output(arguments);
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

// The times of docs/mg-wfbp.md: layer 3 travels from 1 to 4, layers 2 and 1 from 4 to 8.
TEST_F(ModelMerge, WritesATimelineOfWhatIsComputedAndWhatTravels) {
  const std::string path = (root_ / "trace.json").string();
  output(kThreeLayers, {"--policy", "optimal", "--timeline", path});
  EXPECT_EQ(json::parse(text_of(path)), json::parse(R"({"displayTimeUnit":"ms","traceEvents":[
      {"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"optimal"}},
      {"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"computation"}},
      {"name":"thread_name","ph":"M","pid":1,"tid":2,"args":{"name":"communication"}},
      {"name":"layer 3","ph":"X","pid":1,"tid":1,"ts":0,"dur":1e6,"args":{"bytes":1}},
      {"name":"layer 2","ph":"X","pid":1,"tid":1,"ts":1e6,"dur":1e6,"args":{"bytes":1}},
      {"name":"layer 1","ph":"X","pid":1,"tid":1,"ts":2e6,"dur":2e6,"args":{"bytes":1}},
      {"name":"layer 3","ph":"X","pid":1,"tid":2,"ts":1e6,"dur":3e6,
       "args":{"bytes":1,"ready_us":1e6}},
      {"name":"layers 1-2","ph":"X","pid":1,"tid":2,"ts":4e6,"dur":4e6,
       "args":{"bytes":2,"ready_us":4e6}}]})"));
}

TEST_F(ModelMerge, HasAProcessOfTheTimelineForEachPolicyWithTheForwardPass) {
  const std::string path = (root_ / "trace.json").string();
  output(R"({"alpha":1,"beta":0,"forward_seconds":2,"layers":[{"bytes":1,"backward_seconds":1}]})",
         {"--timeline", path});
  std::vector<std::string> processes;
  unsigned forward = 0;
  const json trace = json::parse(text_of(path));
  for (const json& event : trace["traceEvents"]) {
    if (event["name"] == "process_name") processes.push_back(event["args"]["name"]);
    if (event["name"] != "forward") continue;
    ++forward;
    EXPECT_EQ(event["ts"], 0);
    EXPECT_EQ(event["dur"], 2e6);
  }
  EXPECT_THAT(processes, testing::ElementsAre("wfbp", "synceasgd", "mgwfbp", "optimal"));
  EXPECT_EQ(forward, 4u);
  const Outcome refused = gradcube({"model", "merge", "--profile", profile(kThreeLayers),
                                    "--timeline", (root_ / "none" / "trace.json").string()});
  EXPECT_EQ(refused.code, 1);
  EXPECT_THAT(refused.err, testing::HasSubstr("--timeline: cannot write"));
}

TEST_F(ModelMerge, SaysWhatIsWrongWithAProfile) {
  refuse("", "it is empty");
  refuse("{", "it is no JSON");
  refuse("[]", "it is no profile");
  refuse(R"({"beta":1,"layers":[]})", "\"alpha\" is no time in seconds");
  refuse(R"({"alpha":1,"beta":-1})", "\"beta\" is no time in seconds for a byte");
  refuse(R"({"alpha":1,"beta":1.001})", "\"beta\" is no time in seconds for a byte, 0 to 1");
  refuse(R"({"alpha":1,"beta":"1"})", "\"beta\" is no time in seconds for a byte");
  refuse(R"({"alpha":1.001e9,"beta":1})", "\"alpha\" is no time in seconds, 0 to 10^9");
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
  expect_usage_error({"model", "merge", "--profile", "/none/such"},
                     "it cannot be read: No such file or directory; expected");
  expect_usage_error({"model", "merge", "--profile", root_}, "it cannot be read: Is a directory");
  const std::string pipe = root_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_usage_error({"model", "merge", "--profile", pipe}, "it is empty");
  expect_usage_error({"model", "merge"}, "--profile is missing");
  expect_usage_error({"model", "merge", "--profile", profile(kThreeLayers), "--policy", "best"},
                     "expected all, wfbp, synceasgd, mgwfbp, optimal");
}

}  // namespace
}  // namespace gradcube::cli
