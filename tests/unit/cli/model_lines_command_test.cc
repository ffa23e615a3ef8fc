// `gradcube model fit --nodes`: what it prints, and what it refuses. The lines are tested in
// tests/unit/control/model/mgwfbp_model_test.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/unit/cli/model_fixture.h"

namespace gradcube::cli {
namespace {

using nlohmann::json;
using testing::HasSubstr;

class ModelLines : public ModelCommandLine {
 protected:
  ModelLines() : ModelCommandLine({"model", "fit"}) {}
};

const std::vector<std::string> kSimple = {"--nodes", "8",       "--alpha", "1us",     "--beta",
                                          "2ns",     "--gamma", "8ns",     "--bytes", "1K"};

TEST_F(ModelLines, HasTheRowsOfTable2) {
  const json lines = rows(kSimple);
  ASSERT_EQ(lines.size(), 4u);
  const auto expect_line = [&](std::size_t i, const char* name, double a, double b) {
    EXPECT_EQ(lines[i]["algorithm"], name);
    EXPECT_EQ(lines[i]["nodes"], 8);
    EXPECT_NEAR(lines[i]["a"].get<double>(), a * 1e-6, 1e-15);
    EXPECT_NEAR(lines[i]["b"].get<double>(), b * 1e-9, 1e-18);
    EXPECT_NEAR(lines[i]["seconds"].get<double>(), a * 1e-6 + b * 1e-6, 1e-15);
  };
  expect_line(0, "binary_tree", 6, 36);
  expect_line(1, "recursive_doubling", 3, 30);
  expect_line(2, "halving_doubling", 6, 10.5);
  expect_line(3, "ring", 14, 10.5);
}

TEST_F(ModelLines, HasTheRingAloneForWhatIsNoPowerOfTwo) {
  const json lines = rows({"--nodes", "6,8"});
  ASSERT_EQ(lines.size(), 1u + 4);
  EXPECT_EQ(lines[0]["algorithm"], "ring");
  EXPECT_EQ(lines[0]["nodes"], 6);
}

TEST_F(ModelLines, PrintsATableThatSaysWhatMessagesAndBytesCost) {
  const std::string text = output(kSimple);
  EXPECT_THAT(text, HasSubstr("# M is 1 KB; a message takes 1 us, each byte sent 2 ns and each "
                              "added 8 ns\n"));
  EXPECT_THAT(text, HasSubstr("\nalgorithm           nodes      a  b, ns/B   a + bM\n"));
  EXPECT_THAT(text, HasSubstr("\nring                    8  14 us     10.5  24.5 us\n"));
}

TEST_F(ModelLines, SaysWhatIsWrongWithAnOption) {
  refuse({"--nodes", "1"}, "--nodes");
  refuse({"--nodes", "8", "--bytes", "x"}, "--bytes");
  refuse({"--nodes", "8", "--beta", "1"}, "--beta");
  refuse({"--beta", "1ns"}, "--nodes");
  refuse({"--nodes", "8", "--keep"}, "--keep");
}

}  // namespace
}  // namespace gradcube::cli
