#include "cli/measure/perf_row.h"

#include <gtest/gtest.h>

#include "tests/unit/cli/measured_row.h"

namespace gradcube::cli {
namespace {

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

TEST(PerfFigures, OfMessagesHaveTheirBandwidthForThatOfTheBus) {
  PerfRow row = measured_row();
  row.kind = std::nullopt;
  EXPECT_DOUBLE_EQ(figures(row, kBcube32).busbw, figures(row, kBcube32).algbw);
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

}  // namespace
}  // namespace gradcube::cli
