#include "control/model/gst_table.h"

#include <gtest/gtest.h>
#include <map>
#include <stdexcept>
#include <string>

#include "control/model/bml_model.h"

namespace gradcube::control::model {
namespace {

// T_F is a second.
constexpr ModelLoad kGstLoad{.bytes = 1.25e9, .bits_per_second = 10e9};

std::map<std::string, ModelRow> rows(const char* spec, const ModelLoad& load = kGstLoad) {
  std::map<std::string, ModelRow> by_name;
  for (const std::string_view name : gst_algorithms()) {
    if (auto row = gst_row(parse_model_topology(spec, "test"), name, load)) {
      by_name.emplace(name, *row);
    }
  }
  return by_name;
}

std::map<std::string, double> relatives(const char* spec) {
  std::map<std::string, double> by_name;
  for (const auto& [name, row] : rows(spec)) by_name.emplace(name, row.relative);
  return by_name;
}

TEST(GstTable, ListsBcubeByTheFiguresOfThePapers) {
  const std::map<std::string, double> expected = {
      {"bml", 0.9375},       {"mesh", 1.5},    {"ring", 1.875},        {"hips:mesh", 0.9375},
      {"hips:ring", 0.9375}, {"hips:root", 6}, {"blueconnect", 1.875}, {"halving_doubling", 1.875},
      {"two-level", 4.5}};
  EXPECT_EQ(relatives("bcube:4,2"), expected);
}

TEST(GstTable, ListsATorusByTable3) {
  const std::map<std::string, double> expected = {
      {"mesh", 0.75}, {"ring", 0.9375}, {"hips:ring", 0.46875}, {"blueconnect", 1.875}};
  EXPECT_EQ(relatives("torus:4,2"), expected);
  EXPECT_NE(rows("torus:4,2").at("mesh").source.find("lower bound"), std::string::npos);
}

TEST(GstTable, ListsAGeneralizedBcubeByItsBusiestLevel) {
  const std::map<std::string, double> expected = {
      {"bml", 1},       {"mesh", 4.0 / 3},       {"ring", 5.0 / 3},       {"hips:mesh", 1},
      {"hips:ring", 1}, {"two-level", 10.0 / 3}, {"blueconnect", 5.0 / 3}};
  const auto actual = relatives("bcube:3x2");
  ASSERT_EQ(actual.size(), expected.size());
  for (const auto& [name, relative] : expected) {
    EXPECT_NEAR(actual.at(name), relative, 1e-12) << name;
  }
  EXPECT_NE(rows("bcube:3x2").at("bml").source.find("lower bound"), std::string::npos);
}

TEST(GstTable, GivesEveryBalancedAlgorithmTheSameTimeUnderOneSwitch) {
  for (const char* spec : {"star:16", "fattree:16", "bcube:16,1"}) {
    for (const auto& [name, relative] : relatives(spec)) {
      EXPECT_DOUBLE_EQ(relative, name == "hips:root" || name == "ps" ? 30 : 1.875)
          << name << " on " << spec;
    }
  }
}

TEST(GstTable, LeavesOutWhatNoPaperGives) {
  EXPECT_EQ(rows("fattree:16").count("hips:mesh"), 0u);
  EXPECT_EQ(rows("star:9").count("halving_doubling"), 0u) << "9 is no power of two";
  EXPECT_EQ(rows("bcube:16,1").count("two-level"), 0u) << "there is one group";
  EXPECT_EQ(rows("torus:4,2").count("bml"), 0u);
  EXPECT_EQ(rows("bcube:4,2").count("ps"), 0u) << "one for all servers";
}

TEST(GstTable, GroupsServersByTheirLevel0Switch) {
  // Four reduce and broadcast, 4 * 3/4; sixteen masters synchronize, 2 * 15/16.
  EXPECT_DOUBLE_EQ(relatives("bcube:4,3").at("two-level"), 4.875);
}

TEST(GstTable, DescribesEachRow) {
  const ModelLoad load{.bytes = 1e8, .bits_per_second = 10e9};
  const ModelRow row = gst_row(parse_model_topology("bcube:3,2", "test"), "bml", load).value();
  EXPECT_EQ(row.topology, "bcube:3,2");
  EXPECT_EQ(row.algorithm, "bml");
  EXPECT_EQ(row.servers, 9u);
  EXPECT_DOUBLE_EQ(row.seconds, 0.08 * 8 / 9);
  EXPECT_DOUBLE_EQ(row.relative, 8.0 / 9);
  EXPECT_EQ(row.source, "BML 3.2");
}

TEST(GstTable, HasTwoLevelsOnATopologyOfOneLevelForGroupsThatDivideIt) {
  ModelLoad load{.bytes = 1.25e9, .bits_per_second = 10e9};
  EXPECT_EQ(rows("fattree:16", load).count("two-level"), 0u);
  load.group = 4;
  for (const char* spec : {"fattree:16", "star:16"}) {
    EXPECT_DOUBLE_EQ(rows(spec, load).at("two-level").relative,
                     rows("bcube:4,2", load).at("two-level").relative);
  }
  for (const std::uint64_t group : {1U, 3U, 16U, 32U}) {
    load.group = group;
    EXPECT_EQ(rows("fattree:16", load).count("two-level"), 0u) << group;
  }
  EXPECT_EQ(rows("torus:4,2", load).count("two-level"), 0u);
}

// Messages that a server's busiest port passes one after the other in both stages.
TEST(GstTable, AddsTheLatencyOfEveryMessage) {
  const ModelLoad slow{.bytes = 1.25e9, .bits_per_second = 10e9, .latency_seconds = 1};
  const auto messages = [&](const char* spec, const char* algorithm) {
    return rows(spec, slow).at(algorithm).seconds - rows(spec).at(algorithm).seconds;
  };
  const std::map<std::string, double> expected = {
      {"bml", 12},       {"mesh", 24},      {"ring", 30},       {"hips:mesh", 12},
      {"hips:ring", 12}, {"hips:root", 12}, {"blueconnect", 8}, {"halving_doubling", 8},
      {"two-level", 14}};
  for (const auto& [name, count] : expected) {
    EXPECT_NEAR(messages("bcube:4,2", name.c_str()), count, 1e-9) << name;
  }
  EXPECT_NEAR(messages("star:9", "mesh"), 16, 1e-9);
  EXPECT_NEAR(messages("star:9", "bml"), 16, 1e-9);
  EXPECT_NEAR(messages("bcube:3x2", "bml"), 2 * (1 + 2), 1e-9);
  EXPECT_NEAR(messages("bcube:3x2", "mesh"), 2 * 4, 1e-9);
  EXPECT_NEAR(messages("torus:4,2", "mesh"), 12, 1e-9);
  EXPECT_NEAR(messages("torus:4,2", "hips:ring"), 12, 1e-9);
  EXPECT_NEAR(messages("torus:4,2", "ring"), 30, 1e-9);
  EXPECT_NEAR(messages("torus:4,2", "blueconnect"), 12, 1e-9) << "no stage is halved on cables";
  EXPECT_NEAR(messages("torus:5,2", "blueconnect"), 16, 1e-9);
}

TEST(GstTable, RelatesToATransferWithoutLatency) {
  const ModelLoad slow{.bytes = 1e8, .bits_per_second = 10e9, .latency_seconds = 0.001};
  for (const auto& [name, row] : rows("bcube:4,2", slow)) {
    EXPECT_DOUBLE_EQ(row.relative, row.seconds / 0.08) << name;
  }
}

TEST(GstTable, RefusesWhatHasNoTime) {
  const ModelTopology cube = parse_model_topology("bcube:4,2", "test");
  EXPECT_THROW(gst_row(cube, "magic", kGstLoad), std::invalid_argument);
  EXPECT_THROW(gst_row(cube, "bml", {.bytes = 0, .bits_per_second = 1e9}), std::invalid_argument);
  EXPECT_THROW(gst_row(cube, "bml", {.bytes = 1, .bits_per_second = 0}), std::invalid_argument);
  EXPECT_THROW(gst_row(cube, "bml", {.bytes = 1, .bits_per_second = 1, .latency_seconds = -1}),
               std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
