#include "cli/perf/perf_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

#include "tests/unit/cli/measured_row.h"

namespace gradcube::cli {
namespace {

ReportTable table_of(const PerfRow& row, const PerfLinks& links) {
  ReportTable table(perf_columns());
  table.add(perf_cells(row, links));
  return table;
}

std::string row_of(const PerfRow& row, const PerfLinks& links) {
  return table_of(row, links).last();
}

nlohmann::ordered_json json_of(const PerfRow& row, const PerfLinks& links) {
  return table_of(row, links).json()[0];
}

TEST(PerfTable, ShowsBandwidthsOfSmallSizesToo) {
  PerfRow row = measured_row();
  row.count = 250;
  EXPECT_THAT(row_of(row, kBcube32), testing::HasSubstr(" 2.04e-06 "));
}

TEST(PerfRowJson, HoldsTheFieldsThatOtherToolsReadAndNullWithoutARate) {
  const auto row =
      json_of(measured_row(), {.ranks = 9, .busiest_share = 0.5, .rate_bps = std::nullopt});
  EXPECT_EQ(row["bytes"], 12500000);
  EXPECT_EQ(row["count"], 3125000);
  EXPECT_EQ(row["dtype"], "float32");
  EXPECT_EQ(row["op"], "sum");
  EXPECT_EQ(row["iterations"], 4);
  EXPECT_EQ(row["wrong"], 0);
  EXPECT_EQ(row["resent"], 7);
  EXPECT_TRUE(row["bound_seconds"].is_null());
  EXPECT_TRUE(row["efficiency"].is_null());
  for (const char* key : {"seconds_min", "seconds_median", "seconds_max", "algbw", "busbw"}) {
    EXPECT_TRUE(row[key].is_number()) << key;
  }
}

TEST(PerfRowJson, HasNullForATypeOrOperationThatTheKindDoesNotHave) {
  PerfRow row = measured_row();
  row.kind = control::CollectiveKind::broadcast;
  EXPECT_EQ(json_of(row, kBcube32)["dtype"], "float32");
  EXPECT_TRUE(json_of(row, kBcube32)["op"].is_null());
  row.kind = control::CollectiveKind::barrier;
  EXPECT_TRUE(json_of(row, kBcube32)["dtype"].is_null());
  EXPECT_TRUE(json_of(row, kBcube32)["op"].is_null());
}

TEST(PerfTable, AlignsRowsWithItsHead) {
  std::istringstream head(ReportTable(perf_columns()).head());
  std::string titles, units;
  std::getline(head, titles);
  std::getline(head, units);
  std::string row = row_of(measured_row(), kBcube32);
  ASSERT_EQ(row.back(), '\n');
  row.pop_back();
  EXPECT_EQ(titles.size(), row.size());
  EXPECT_EQ(titles.find("count") + 5, units.find("(elements)") + 10);
  EXPECT_THAT(row, testing::HasSubstr("12500000"));
  EXPECT_THAT(row, testing::HasSubstr(" 490000 "));
  EXPECT_THAT(row, testing::EndsWith(" 7"));
}

TEST(PerfTable, ShowsADashForATypeOrOperationThatTheKindDoesNotHave) {
  PerfRow row = measured_row();
  row.kind = control::CollectiveKind::all_gather;
  EXPECT_THAT(row_of(row, kBcube32), testing::HasSubstr("   float32        -  "));
  row.kind = control::CollectiveKind::barrier;
  EXPECT_THAT(row_of(row, kBcube32), testing::HasSubstr("         -        -  "));
}

TEST(PerfWork, IsToldForEachOperation) {
  ReportTable table(work_columns());
  table.add(work_cells(measured_row()));
  EXPECT_EQ(table.json()[0]["segments_each"], 144.0);
  EXPECT_EQ(table.json()[0]["acknowledgements_each"], 10.0);
  EXPECT_EQ(table.json()[0]["sleeps_each"], 3.0);
  EXPECT_EQ(table.json()[0]["cpu_seconds_each"], 0.0005);
}

TEST(PerfWork, IsUnknownWhereADaemonBeganToCountAnewMeanwhile) {
  EXPECT_FALSE(WorkCounts{.segments = 7}.since({.segments = 8}));
  EXPECT_FALSE(WorkCounts{.cpu_ns = 7}.since({.cpu_ns = 8}));
  EXPECT_EQ((WorkCounts{.sleeps = 7}.since({.sleeps = 4}))->sleeps, 3u);
  PerfRow row = measured_row();
  row.work.reset();
  ReportTable table(work_columns());
  table.add(work_cells(row));
  EXPECT_TRUE(table.json()[0]["sleeps_each"].is_null());
}

TEST(PerfTable, ShowsADashForWhatWasNotMeasured) {
  PerfRow row = measured_row();
  row.wrong.reset();
  row.work.reset();
  EXPECT_THAT(row_of(row, kBcube32), testing::EndsWith("-       -\n"));
}

}  // namespace
}  // namespace gradcube::cli
