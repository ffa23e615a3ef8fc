#include "control/model/line_fit.h"

#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

namespace gradcube::control::model {
namespace {

std::vector<TimedSize> points_of(double a, double b) {
  std::vector<TimedSize> points;
  for (const double bytes : {64.0, 256.0, 1e3, 4e3, 16e3, 64e3, 256e3, 1e6}) {
    points.push_back({bytes, a + b * bytes});
  }
  return points;
}

TEST(LineFit, FindsTheLineThatPointsLieOn) {
  const AllReduceCost line = fitted_line(points_of(3e-5, 8e-9));
  EXPECT_NEAR(line.a, 3e-5, 1e-15);
  EXPECT_NEAR(line.b, 8e-9, 1e-18);
}

TEST(LineFit, IsNotMovedByAWildPointAtEitherEnd) {
  for (const std::size_t wild : {std::size_t{0}, std::size_t{7}}) {
    std::vector<TimedSize> points = points_of(3e-5, 8e-9);
    points[wild].seconds *= 50;
    const AllReduceCost line = fitted_line(points);
    EXPECT_NEAR(line.a, 3e-5, 1e-12) << wild;
    EXPECT_NEAR(line.b, 8e-9, 1e-15) << wild;
  }
}

TEST(LineFit, TakesTheMiddleOfPointsOfOneSize) {
  const std::vector<TimedSize> points = {{0, 1}, {0, 2}, {0, 9}, {10, 12}, {10, 12}, {10, 12}};
  const AllReduceCost line = fitted_line(points);
  EXPECT_DOUBLE_EQ(line.b, 1);
  EXPECT_DOUBLE_EQ(line.a, 2);
}

TEST(LineFit, NeedsTwoSizes) {
  EXPECT_THROW(fitted_line({}), std::invalid_argument);
  const std::vector<TimedSize> one = {{8, 1}, {8, 2}};
  EXPECT_THROW(fitted_line(one), std::invalid_argument);
  EXPECT_THROW(median({}), std::invalid_argument);
}

TEST(LineFit, MedianIsTheMiddle) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Misfit, IsHowFarTheMiddleTimeLiesOffTheLine) {
  const AllReduceCost line{.a = 1, .b = 2};
  const std::vector<TimedSize> points = {{0, 1}, {1, 3}, {2, 10}, {3, 14}, {4, 0}};
  EXPECT_DOUBLE_EQ(misfit(points, line), 0.5);
  EXPECT_DOUBLE_EQ(misfit(std::vector<TimedSize>{{0, 1}, {1, 3}}, line), 0);
  EXPECT_THROW(misfit({}, line), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::control::model
