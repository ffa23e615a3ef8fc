#include "control/model/line_fit.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

namespace gradcube::control::model {

double median(std::vector<double> values) {
  if (values.empty()) throw std::invalid_argument("the median of nothing");
  std::sort(values.begin(), values.end());
  const std::size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

AllReduceCost fitted_line(std::span<const TimedSize> points) {
  std::vector<double> slopes;
  for (std::size_t i = 0; i < points.size(); ++i) {
    for (std::size_t j = i + 1; j < points.size(); ++j) {
      if (points[i].bytes == points[j].bytes) continue;
      slopes.push_back((points[j].seconds - points[i].seconds) /
                       (points[j].bytes - points[i].bytes));
    }
  }
  if (slopes.empty()) throw std::invalid_argument("a line needs two sizes");
  const double b = median(std::move(slopes));
  std::vector<double> left;
  for (const TimedSize& point : points) left.push_back(point.seconds - b * point.bytes);
  return {.a = median(std::move(left)), .b = b};
}

double misfit(std::span<const TimedSize> points, const AllReduceCost& line) {
  std::vector<double> shares;
  for (const TimedSize& point : points) {
    const double off = std::abs(point.seconds - (line.a + line.b * point.bytes));
    shares.push_back(point.seconds > 0 ? off / point.seconds : 1);
  }
  return median(std::move(shares));
}

}  // namespace gradcube::control::model
