// `gradcube model`: what it prints, and what it refuses. The figures are tested in
// tests/unit/control/model/.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/cli/model_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;
using testing::Not;

class ModelCommand : public ModelCommandLine {};

TEST_F(ModelCommand, PrintsOneJsonObjectWithARowForEachAlgorithm) {
  const json list = rows({"gst", "--topology", "bcube:4,2", "--bytes", "100M", "--rate", "10gbit",
                          "--algorithm", "all"});
  ASSERT_EQ(list.size(), 9u);
  EXPECT_EQ(list[0], json::parse(R"({"topology":"bcube:4,2","algorithm":"bml","servers":16,)"
                                 R"("seconds":0.075,"relative":0.9375,"source":"BML 3.2"})"));
  std::set<std::string> names;
  for (const json& row : list) names.insert(row["algorithm"]);
  EXPECT_EQ(names,
            (std::set<std::string>{"bml", "mesh", "ring", "hips:mesh", "hips:ring", "hips:root",
                                   "blueconnect", "halving_doubling", "two-level"}));
}

TEST_F(ModelCommand, ComparesTopologiesInTheOrderGiven) {
  const json list = rows({"gst", "--topology", "fattree:9", "--topology", "bcube:3,2",
                          "--algorithm", "mesh", "--algorithm", "bml"});
  ASSERT_EQ(list.size(), 4u);
  EXPECT_EQ(list[0]["topology"], "fattree:9");
  EXPECT_EQ(list[0]["algorithm"], "bml");
  EXPECT_EQ(list[1]["algorithm"], "mesh");
  EXPECT_EQ(list[2]["topology"], "bcube:3,2");
  // BML on BCube takes a k-th of PS on a Fat-Tree.
  EXPECT_DOUBLE_EQ(list[2]["seconds"].get<double>(), list[1]["seconds"].get<double>() / 2);
}

TEST_F(ModelCommand, AddsTheLatencyOfMessages) {
  const std::vector<std::string> ring = {"gst",     "--topology", "star:9", "--algorithm", "ring",
                                         "--bytes", "100M",       "--rate", "10gbit"};
  std::vector<std::string> late = ring;
  late.insert(late.end(), {"--latency", "5us"});
  EXPECT_NEAR(rows(late)[0]["seconds"].get<double>() - rows(ring)[0]["seconds"].get<double>(),
              16 * 5e-6, 1e-12);
}

TEST_F(ModelCommand, LeavesOutTopologiesThatHaveNoTimeOfAnAlgorithmIfOthersHave) {
  const json list =
      rows({"gst", "--topology", "torus:4,2", "--topology", "bcube:4,2", "--algorithm", "bml"});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["topology"], "bcube:4,2");
  expect_usage_error({"model", "gst", "--topology", "torus:4,2", "--algorithm", "bml"},
                     "--algorithm bml: no paper gives its time on torus:4,2; expected, on "
                     "torus:4,2, mesh, ring, hips:ring, blueconnect");
}

TEST_F(ModelCommand, AsksForTheGroupsOfTwoLevelsOnAFatTree) {
  expect_usage_error({"model", "gst", "--topology", "fattree:16", "--algorithm", "two-level"},
                     "name with --group a number that divides those on fattree:16");
  const json list =
      rows({"gst", "--topology", "fattree:16", "--algorithm", "two-level", "--group", "4"});
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0]["source"], "BlueConnect Eq. 7");
}

TEST_F(ModelCommand, PrintsATableWithTheTransferTime) {
  const std::string text =
      output({"gst", "--topology", "bcube:4,2", "--algorithm", "hips:mesh", "--latency", "10us"});
  EXPECT_EQ(text,
            "# 100 MB at 10 Gbit/s, 10 us for each message: T_F, one transfer over one link, is "
            "80 ms\n"
            "topology   algorithm  servers     time  time/T_F  source\n"
            "bcube:4,2  hips:mesh       16  75.1 ms     0.939  HiPS Table 3, HiPS\n");
}

TEST_F(ModelCommand, SaysFromWhichSizeOnWhichAlgorithmWins) {
  EXPECT_EQ(output({"gst", "--crossover", "--topology", "bcube:4,2", "--rate", "10gbit"}),
            "# 10 Gbit/s, 5 us for each message\n"
            "topology      from  least time by                  latency  time/T_F\n"
            "bcube:4,2      0 B  blueconnect, halving_doubling    40 us     1.875\n"
            "bcube:4,2  26.7 KB  bml, hips:mesh, hips:ring        60 us    0.9375\n");
  const json list =
      rows({"gst", "--crossover", "--topology", "star:9", "--topology", "bcube:16,4"});
  EXPECT_EQ(list[0]["topology"], "star:9");
  EXPECT_EQ(list[0]["from_bytes"], 0);
  EXPECT_EQ(list.back()["topology"], "bcube:16,4");
  EXPECT_EQ(list.back()["algorithms"], json::parse(R"(["bml","hips:mesh","hips:ring"])"));
  EXPECT_NEAR(list.back()["latency_seconds"].get<double>(), 120 * 5e-6, 1e-12);
}

TEST_F(ModelCommand, CountsSwitchesNextToThoseOfFatTrees) {
  EXPECT_EQ(output({"gst", "--switches", "--topology", "bcube:4,2", "--topology", "bcube:9,1"}),
            "topology    servers  NICs/server  ports/switch  switches  relative\n"
            "bcube:4,2        16            2             4         8       0.4\n"
            "fattree:16       16            1             4        20         1\n"
            "fattree:16       16            2             4        40         2\n"
            "bcube:9,1         9            1             9         1       0.2\n"
            "fattree:9         9            1             9         5         1\n");
  const json list = rows({"gst", "--switches", "--topology", "bcube:16,4"});
  ASSERT_EQ(list.size(), 3u);
  EXPECT_EQ(list[0], json::parse(R"({"topology":"bcube:16,4","servers":65536,"nics_per_server":4,)"
                                 R"("ports_per_switch":16,"switches":16384,"relative":0.8})"));
}

TEST_F(ModelCommand, ComparesBlueConnectWithOneAndTwoLevels) {
  const json tree =
      rows({"gst", "--factors", "4x2", "--rates", "126gbit,10gbit", "--bytes", "100M"});
  ASSERT_EQ(tree.size(), 3u);
  std::map<std::string, double> relative;
  for (const json& row : tree) {
    EXPECT_EQ(row["topology"], "tree:4x2");
    EXPECT_EQ(row["servers"], 8);
    relative.emplace(row["algorithm"], row["relative"].get<double>());
  }
  EXPECT_DOUBLE_EQ(relative.at("ring"), 2 * 7 / 8.0);
  EXPECT_NEAR(relative.at("blueconnect"), 2 * (0.75 * 10 / 126 + 0.5 / 4 * 4), 1e-12);
  EXPECT_NEAR(relative.at("two-level"), 4 * 0.75 * 10 / 126 + 2 * 0.5, 1e-12);
  const json torus =
      rows({"gst", "--network", "torus", "--factors", "1x4x4", "--rates", "10gbit,10gbit,10gbit"});
  EXPECT_EQ(torus[2]["source"], "BlueConnect Eq. 10");
  EXPECT_DOUBLE_EQ(torus[2]["relative"].get<double>(), 1.875);
}

TEST_F(ModelCommand, SaysWhatIsWrongAndWhatIsAccepted) {
  const auto refused = [this](std::vector<std::string> arguments, const std::string& what) {
    arguments.insert(arguments.begin(), "model");
    expect_usage_error(arguments, what);
  };
  refused({"gst", "--topology", "bcube:1,2"}, "--topology \"bcube:1,2\": n \"1\"");
  refused({"gst", "--topology", "ring:4"}, "star:N or fattree:N");
  refused({"gst", "--topology", ""}, "--topology");
  refused({"gst", "--algorithm", "hips:rng"}, "(did you mean hips:ring?)");
  refused({"gst", "--algorithm", "magic"}, "expected all, bml, ps, mesh");
  refused({"gst", "--algorithm", "all", "--algorithm", "magic"}, "\"magic\"");
  refused({"gst", "--bytes", "0"}, "--bytes");
  refused({"gst", "--rate", "10"}, "--rate");
  refused({"gst", "--latency", "5"}, "--latency");
  refused({"gst", "--crossover", "--topology", "ring:4"}, "star:N or fattree:N");
  refused({"gst", "--crossover", "--rate", "10"}, "--rate");
  refused({"gst", "--crossover", "--latency", "-1us"}, "--latency");
  refused({"gst", "--crossover", "--switches"}, "--crossover");
  refused({"gst", "--crossover", "--algorithm", "bml"}, "--algorithm");
  refused({"gst", "--switches", "--topology", "star:9"}, "expected bcube:n,k");
  refused({"gst", "--factors", "3x2"}, "--rates");
  refused({"gst", "--factors", "3", "--rates", "1gbit", "--topology", "star:3"}, "--topology");
  refused({"gst", "--factors", "3x2", "--rates", "1gbit"}, "a rate for each factor");
  refused({"gst", "--factors", "3x1", "--rates", "1gbit,1gbit"}, "--factors \"1\"");
  refused({"gst", "--factors", "1x3", "--rates", "1gbit,1gbit"}, "--factors \"1\"");
  refused({"gst", "--network", "torus", "--factors", "1", "--rates", "1gbit"}, "--factors \"1\"");
  refused({"gst", "--factors", "60000x60000", "--rates", "1gbit,1gbit"},
          "at most 1000000000 learners");
  refused({"gst", "--network", "ring", "--factors", "3", "--rates", "1gbit"},
          "expected tree, torus");
}

TEST_F(ModelCommand, NamesTheModelsAndTheirHelp) {
  expect_usage_error({"model"}, "the models are gst, merge, training, hub, figure, fit");
  expect_usage_error({"model", "hubs"}, "there is no command \"model hubs\" (did you mean hub?)");
  expect_usage_error({"model", "dance"}, "`gradcube model --help`");
  expect_usage_error({"model", "gst", "--topolgy", "star:9"}, "(did you mean --topology?)");
  expect_usage_error({"model", "gst", "now"}, "`gradcube model gst --help`");
  expect_usage_error({"model", "gst", "--rate"}, "`gradcube model gst --help`");
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"--help"}, {"gst", "--help"}, {"hub", "--help"}, {"fit", "--help"}}) {
    EXPECT_THAT(output(command), HasSubstr("Example"));
  }
}

TEST_F(ModelCommand, ShortensAndEscapesForeignText) {
  const std::string foreign = std::string(20'000, 'x') + "\x1b[2J\nsecond line";
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"model", foreign},
           {"model", "gst", foreign},
           {"model", "gst", "--topology", foreign},
           {"model", "gst", "--topology", "bcube:" + foreign + ",2"},
           {"model", "gst", "--algorithm", foreign},
           {"model", "gst", "--switches", "--topology", foreign},
           {"model", "gst", "--factors", foreign, "--rates", "1gbit"},
           {"model", "gst", "--factors", "2", "--rates", foreign},
           {"model", "gst", "--network", foreign, "--factors", "2", "--rates", "1gbit"}}) {
    const Outcome outcome = gradcube(arguments);
    EXPECT_EQ(outcome.code, 2);
    EXPECT_LT(outcome.err.size(), 1000u) << arguments[1].substr(0, 20);
    EXPECT_THAT(outcome.err, Not(HasSubstr("\x1b")));
  }
}

TEST_F(ModelCommand, FailsWhenItsOutputCannotBeWritten) {
  for (const char* model : {"gst", "hub"}) {
    EXPECT_EQ(gradcube({"model", model}, "/dev/full").code, 1);
    EXPECT_EQ(gradcube({"model", model, "--json"}, "/dev/full").code, 1);
  }
}

}  // namespace
}  // namespace gradcube::cli
