// `gradcube model training`: what it prints, and what it refuses. Its times are tested in
// tests/unit/control/training/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/cli/model_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::StartsWith;

class ModelTraining : public ModelCommandLine {
 protected:
  ModelTraining() : ModelCommandLine({"model", "training"}) {}
};

TEST_F(ModelTraining, HasARowForEachNetworkNumberOfNodesAndPolicy) {
  const json all = rows({"--network", "all"});
  EXPECT_EQ(all.size(), 4u * 5 * 4);
  std::set<std::string> keys;
  for (const auto& [key, value] : all[0].items()) keys.insert(key);
  EXPECT_EQ(keys, (std::set<std::string>{"network", "nodes", "policy", "iteration_seconds",
                                         "speedup_over_wfbp", "speedup_over_synceasgd"}));
  std::set<std::string> seen;
  for (const json& row : all) {
    seen.insert(row["network"].get<std::string>() + row["nodes"].dump() +
                row["policy"].get<std::string>());
    EXPECT_GT(row["iteration_seconds"], 0);
    if (row["policy"] == "wfbp") {
      EXPECT_EQ(row["speedup_over_wfbp"], 1);
    } else if (row["policy"] == "synceasgd") {
      EXPECT_EQ(row["speedup_over_synceasgd"], 1);
    }
  }
  EXPECT_EQ(seen.size(), all.size());
}

TEST_F(ModelTraining, ShowsThePapersNetworksAndNodesUnlessAskedForOthers) {
  const json paper = rows({"--policy", "mgwfbp"});
  ASSERT_EQ(paper.size(), 2u * 5);
  EXPECT_EQ(paper[0]["network"], "googlenet");
  EXPECT_EQ(paper[4]["nodes"], 64);
  EXPECT_EQ(paper[5]["network"], "resnet50");
  const json one = rows({"--network", "lenet5", "--nodes", "9", "--policy", "wfbp"});
  ASSERT_EQ(one.size(), 1u);
  EXPECT_EQ(one[0]["nodes"], 9);
}

// Without messages that cost anything all policies take what is computed.
TEST_F(ModelTraining, TakesTheCostsAndTheTimeOfComputingThatItIsGiven) {
  const std::vector<std::string> free = {"--network", "resnet50", "--nodes",   "8",
                                         "--alpha",   "0",        "--beta",    "0ns",
                                         "--gamma",   "0ns",      "--compute", "200ms"};
  for (const json& row : rows(free)) {
    EXPECT_NEAR(row["iteration_seconds"].get<double>(), 0.2, 1e-9) << row["policy"];
  }
  // A ring of 2 nodes: a = 2 alpha, b = beta + gamma / 2.
  const json both = rows({"--network", "vgg19", "--nodes", "2", "--policy", "synceasgd", "--alpha",
                          "5ms", "--beta", "1.5ns", "--gamma", "1ns", "--compute", "1s"});
  EXPECT_NEAR(both[0]["iteration_seconds"].get<double>(), 1 + 0.01 + 2e-9 * 4 * 143'667'240, 1e-9);
}

TEST_F(ModelTraining, PrintsATableThatSaysWhereItsTimesAreFrom) {
  const std::string text = output({"--network", "resnet50", "--nodes", "64"});
  EXPECT_THAT(text,
              StartsWith("# resnet50: 107 layers, 102.2 MB, batches of 32; both passes take "));
  EXPECT_THAT(text, HasSubstr(" on the paper's GPU, "));
  EXPECT_THAT(text, HasSubstr(" times a CPU's\n# all-reduces are rings: 45.3 us for each of "
                              "2(N-1) messages, 0.8 ns for each byte sent and 0.1143 ns for each "
                              "added\n"));
  EXPECT_THAT(text, HasSubstr("\nnetwork   nodes  policy     messages  "));
  EXPECT_THAT(text, HasSubstr("\nresnet50     64  wfbp            107  "));
  EXPECT_THAT(text, HasSubstr("\nresnet50     64  synceasgd         1  "));
}

TEST_F(ModelTraining, WritesAProfileThatModelMergeReads) {
  const std::string path = (root_ / "profile.json").string();
  const json rows_here = rows({"--network", "googlenet", "--nodes", "64", "--write-profile", path});
  const json profile = json::parse(text_of(path));
  EXPECT_EQ(profile["layers"].size(), 64u);
  EXPECT_EQ(profile["layers"][0]["name"], "conv1");
  EXPECT_NEAR(profile["alpha"].get<double>(), 126 * 45.26e-6, 1e-12);
  const Outcome merged = gradcube({"model", "merge", "--profile", path, "--json"});
  ASSERT_EQ(merged.code, 0) << merged.err;
  const json answer = json::parse(merged.out);
  ASSERT_EQ(answer["policies"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(answer["policies"][i]["policy"], rows_here[i]["policy"]);
    EXPECT_DOUBLE_EQ(answer["policies"][i]["iteration_seconds"].get<double>(),
                     rows_here[i]["iteration_seconds"].get<double>());
  }
}

TEST_F(ModelTraining, SaysWhatIsWrongWithAnOption) {
  refuse({"--network", "resnet5"}, "did you mean resnet50?");
  refuse({"--network", "x"}, "expected all, googlenet, resnet50, vgg19, lenet5");
  refuse({"--nodes", "1"}, "--nodes");
  refuse({"--nodes", "64..4"}, "expected 4..64");
  refuse({"--policy", "best"}, "expected all, wfbp, synceasgd, mgwfbp, optimal");
  refuse({"--alpha", "45"}, "the unit is missing");
  refuse({"--alpha", ""}, "the value is empty");
  for (const char* text :
       {"0.8", "ns", "-1ns", "nanns", "infns", "1e300ns", "0.8us", "1 ns", "-0ns"}) {
    refuse({"--beta", text}, "for example 0.8ns");
  }
  refuse({"--gamma", "x"}, "--gamma \"x\": this is no time of a byte");
  refuse({"--compute", "0"}, "expected 1ns or more");
  refuse({"--compute", "soon"}, "--compute");
  const std::string path = (root_ / "profile.json").string();
  refuse({"--write-profile", path, "--nodes", "64"}, "of one network on one number of nodes");
  refuse({"--write-profile", path, "--network", "vgg19"}, "of one network on one number of nodes");
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ModelTraining, SaysWhatTheSystemRefuses) {
  EXPECT_THAT(gradcube({"model", "training", "--help"}).out, HasSubstr("and gamma 0"));
  const Outcome nothing_runs = gradcube({"model", "training", "--fitted"});
  EXPECT_EQ(nothing_runs.code, 1);
  EXPECT_THAT(nothing_runs.err, HasSubstr("no cluster"));
  const Outcome no_folder = gradcube({"model", "training", "--network", "lenet5", "--nodes", "2",
                                      "--write-profile", (root_ / "none" / "p.json").string()});
  EXPECT_EQ(no_folder.code, 1);
  EXPECT_THAT(no_folder.err, HasSubstr("--write-profile: cannot write"));
  EXPECT_THAT(no_folder.err, HasSubstr("No such file"));
}

}  // namespace
}  // namespace gradcube::cli
