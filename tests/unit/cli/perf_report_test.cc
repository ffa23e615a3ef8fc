#include "cli/measure/perf_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace gradcube::cli {
namespace {

PerfRow measured_row() {
  return {.count = 3125000,
          .type = aggregation::DataType::float32,
          .operation = aggregation::Operation::sum,
          .in_flight = 1,
          .seconds = {0.5, 0.9, 0.46, 0.48},
          .wrong = 0,
          .resent = 7};
}

constexpr PerfLinks kBcube32{.ranks = 9, .busiest_share = 2.0 * 8 / (2 * 9), .rate_bps = 200e6};

TEST(PerfFigures, BoundIsTheShareOfTheGradientThatEachLinkMustCarry) {
  const PerfFigures derived = figures(measured_row(), kBcube32);
  EXPECT_DOUBLE_EQ(derived.bound_seconds.value(), 2.0 * 8 / (2 * 9) * 12.5e6 * 8 / 200e6);
  EXPECT_DOUBLE_EQ(derived.efficiency.value(), derived.bound_seconds.value() / 0.49);
}

TEST(PerfFigures, OfAReproducibleJobHaveTheBoundOfWhatTheLinksCarry) {
  PerfRow row = measured_row();
  const PerfFigures plain = figures(row, kBcube32);
  row.carried_bytes = 8;
  const PerfFigures reproducible = figures(row, kBcube32);
  EXPECT_DOUBLE_EQ(reproducible.bound_seconds.value(), 2 * plain.bound_seconds.value());
  EXPECT_DOUBLE_EQ(reproducible.algbw, plain.algbw);
}

TEST(PerfFigures, BandwidthsComeFromTheMedian) {
  const PerfFigures derived = figures(measured_row(), kBcube32);
  EXPECT_DOUBLE_EQ(derived.seconds_min, 0.46);
  EXPECT_DOUBLE_EQ(derived.seconds_median, 0.49);
  EXPECT_DOUBLE_EQ(derived.seconds_max, 0.9);
  EXPECT_DOUBLE_EQ(derived.algbw, 12.5e6 / 0.49 / 1e9);
  EXPECT_DOUBLE_EQ(derived.busbw, derived.algbw * 16 / 9);
}

TEST(PerfFigures, WithSeveralInFlightCountTheBytesOfAll) {
  PerfRow row = measured_row();
  const PerfFigures one = figures(row, kBcube32);
  row.in_flight = 4;
  const PerfFigures four = figures(row, kBcube32);
  EXPECT_DOUBLE_EQ(four.algbw, 4 * one.algbw);
  EXPECT_DOUBLE_EQ(four.bound_seconds.value(), 4 * one.bound_seconds.value());
}

TEST(PerfFigures, OfEveryKindHaveTheBusBandwidthOfNcclTests) {
  using control::CollectiveKind;
  PerfRow row = measured_row();
  const double algbw = figures(row, kBcube32).algbw;
  const auto busbw = [&](CollectiveKind kind) {
    row.kind = kind;
    return figures(row, kBcube32).busbw;
  };
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::reduce_scatter), algbw * 8 / 9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::all_gather), algbw * 8 / 9);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::broadcast), algbw);
  EXPECT_DOUBLE_EQ(busbw(CollectiveKind::reduce), algbw);
}

TEST(PerfFigures, HaveNoBoundWhereNoneIsKnown) {
  const PerfLinks unknown{.ranks = 9, .busiest_share = std::nullopt, .rate_bps = 200e6};
  EXPECT_EQ(figures(measured_row(), unknown).bound_seconds, std::nullopt);
  EXPECT_EQ(figures(measured_row(), unknown).efficiency, std::nullopt);
}

TEST(PerfFigures, OfAnEmptyGradientAreZeroAndWithoutEfficiency) {
  PerfRow row = measured_row();
  row.count = 0;
  const PerfFigures derived = figures(row, kBcube32);
  EXPECT_EQ(derived.algbw, 0);
  EXPECT_EQ(derived.bound_seconds, 0.0);
  EXPECT_EQ(derived.efficiency, std::nullopt);
}

TEST(PerfFigures, AverageTheBusBandwidthOfTheRowsThatMoveBytes) {
  PerfRow slow = measured_row();
  slow.seconds = {2 * 0.49};
  PerfRow barrier = measured_row();
  barrier.count = 0;
  const double busbw = figures(measured_row(), kBcube32).busbw;
  EXPECT_DOUBLE_EQ(average_busbw({measured_row(), slow, barrier}, kBcube32).value(), 0.75 * busbw);
  EXPECT_EQ(average_busbw({barrier}, kBcube32), std::nullopt);
}

TEST(PerfTable, ShowsBandwidthsOfSmallSizesToo) {
  PerfRow row = measured_row();
  row.count = 250;
  EXPECT_THAT(table_row(row, kBcube32), testing::HasSubstr(" 2.04e-06 "));
}

TEST(RowJson, HoldsTheFieldsThatOtherToolsReadAndNullWithoutARate) {
  const auto row =
      row_json(measured_row(), {.ranks = 9, .busiest_share = 0.5, .rate_bps = std::nullopt});
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

TEST(RowJson, HasNullForATypeOrOperationThatTheKindDoesNotHave) {
  PerfRow row = measured_row();
  row.kind = control::CollectiveKind::broadcast;
  EXPECT_EQ(row_json(row, kBcube32)["dtype"], "float32");
  EXPECT_TRUE(row_json(row, kBcube32)["op"].is_null());
  row.kind = control::CollectiveKind::barrier;
  EXPECT_TRUE(row_json(row, kBcube32)["dtype"].is_null());
  EXPECT_TRUE(row_json(row, kBcube32)["op"].is_null());
}

TEST(PerfTable, AlignsRowsWithItsHead) {
  std::istringstream head(table_head());
  std::string titles, units;
  std::getline(head, titles);
  std::getline(head, units);
  std::string row = table_row(measured_row(), kBcube32);
  ASSERT_EQ(row.back(), '\n');
  row.pop_back();
  EXPECT_EQ(titles.size(), row.size());
  EXPECT_EQ(units.size(), row.size());
  EXPECT_THAT(row, testing::HasSubstr("12500000"));
  EXPECT_THAT(row, testing::HasSubstr(" 490000 "));
  EXPECT_THAT(row, testing::EndsWith(" 7"));
}

TEST(PerfTable, ShowsADashForATypeOrOperationThatTheKindDoesNotHave) {
  PerfRow row = measured_row();
  row.kind = control::CollectiveKind::all_gather;
  EXPECT_THAT(table_row(row, kBcube32), testing::HasSubstr("   float32        -  "));
  row.kind = control::CollectiveKind::barrier;
  EXPECT_THAT(table_row(row, kBcube32), testing::HasSubstr("         -        -  "));
}

TEST(PerfTable, ShowsADashForWhatWasNotMeasured) {
  PerfRow row = measured_row();
  row.wrong.reset();
  row.resent.reset();
  EXPECT_THAT(table_row(row, kBcube32), testing::EndsWith("-       -\n"));
}

}  // namespace
}  // namespace gradcube::cli
