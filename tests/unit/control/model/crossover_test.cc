#include "control/model/crossover.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <string>
#include <vector>

namespace gradcube::control::model {
namespace {

const ModelLoad kLoad{.bytes = 0, .bits_per_second = 8e9, .latency_seconds = 5e-6};

std::vector<GstLine> lines_of(const char* spec, double latency_seconds = 5e-6) {
  ModelLoad load = kLoad;
  load.latency_seconds = latency_seconds;
  return gst_lines(parse_model_topology(spec, "test"), load);
}

std::vector<std::string> names(const Winners& winners) {
  std::vector<std::string> result;
  for (const GstLine& line : winners.lines) result.push_back(line.algorithm);
  return result;
}

TEST(Crossover, KnowsTheTimeOfEveryRowForAnyNumberOfBytes) {
  for (const char* spec :
       {"bcube:4,2", "bcube:16,4", "bcube:4x3x2", "torus:4,2", "star:9", "fattree:16"}) {
    for (const GstLine& line : lines_of(spec)) {
      for (const double bytes : {1.0, 1500.0, 64e3, 1e8}) {
        ModelLoad load = kLoad;
        load.bytes = bytes;
        const double seconds =
            gst_row(parse_model_topology(spec, "test"), line.algorithm, load)->seconds;
        EXPECT_NEAR(line.seconds(bytes), seconds, 1e-9 * seconds) << line.algorithm << spec;
      }
    }
  }
}

TEST(Crossover, NamesAWinnerThatNoAlgorithmBeatsForAnySize) {
  for (const char* spec : {"bcube:2,2", "bcube:3,2", "bcube:16,4", "bcube:4x3x2", "torus:4,2",
                           "star:9", "star:64", "fattree:1024"}) {
    SCOPED_TRACE(spec);
    const std::vector<GstLine> lines = lines_of(spec);
    const std::vector<Winners> all = crossovers(lines);
    EXPECT_EQ(all.front().from_bytes, 0);
    for (double bytes = 1; bytes < 1e12; bytes *= 1.7) {
      const auto after = std::find_if(all.begin(), all.end(), [&](const Winners& winners) {
        return winners.from_bytes > bytes;
      });
      const double seconds = (after - 1)->lines.front().seconds(bytes);
      for (const GstLine& line : lines) {
        EXPECT_GE(line.seconds(bytes), seconds * (1 - 1e-9)) << line.algorithm << " " << bytes;
      }
    }
  }
}

// On BCube(16,4): 32 messages of 2 transfers, against 120 messages of half a transfer.
TEST(Crossover, LetsTheFewestMessagesWinUntilTheBytesCountMore) {
  const std::vector<Winners> all = crossovers(lines_of("bcube:16,4"));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(names(all[0]), (std::vector<std::string>{"blueconnect", "halving_doubling"}));
  EXPECT_NEAR(all[0].lines[0].latency_seconds, 32 * 5e-6, 1e-12);
  EXPECT_EQ(names(all[1]), (std::vector<std::string>{"bml", "hips:mesh", "hips:ring"}));
  const double of_all = 65535.0 / 65536;
  EXPECT_NEAR(all[1].from_bytes, (120 - 32) * 5e-6 / (1.5 * of_all * 1e-9), 1e-3);
}

TEST(Crossover, HasOneWinnerForAllSizesWhereMessagesTakeNoTime) {
  const std::vector<Winners> all = crossovers(lines_of("bcube:4,2", 0));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(names(all[0]), (std::vector<std::string>{"bml", "hips:mesh", "hips:ring"}));
}

TEST(Crossover, BeginsWithTheFlattestOfThoseThatBeginAlike) {
  const std::vector<Winners> all = crossovers({{"steep", 1, 10}, {"flat", 1, 5}});
  ASSERT_EQ(all.size(), 1u);
  EXPECT_EQ(names(all[0]), std::vector<std::string>{"flat"});
}

TEST(Crossover, PassesOverALineThatTwoOthersUndercut) {
  const std::vector<Winners> all =
      crossovers({{"steep", 0, 10}, {"between", 9, 5}, {"flat", 10, 1}});
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(names(all[1]), std::vector<std::string>{"flat"});
  EXPECT_DOUBLE_EQ(all[1].from_bytes, 10.0 / 9);
}

}  // namespace
}  // namespace gradcube::control::model
