// A line T(M) = a + bM through measured times, as MG-WFBP's Eq. 9 has it, that a
// few wild measurements do not move: the slope is the median of the slopes between all pairs of
// points, and a the median of what the points then have left (Theil, 1950; Sen, 1968). Up to 29 %
// of the points may lie anywhere.
#ifndef GRADCUBE_CONTROL_MODEL_LINE_FIT_H_
#define GRADCUBE_CONTROL_MODEL_LINE_FIT_H_

#include <span>
#include <vector>

#include "control/model/all_reduce_cost.h"

namespace gradcube::control::model {

struct TimedSize {
  double bytes = 0;
  double seconds = 0;
};

// Throws std::invalid_argument unless two points have different sizes.
AllReduceCost fitted_line(std::span<const TimedSize> points);

// How far the points lie off the line: the median of |measured - line| / measured. Throws
// std::invalid_argument for no points.
double misfit(std::span<const TimedSize> points, const AllReduceCost& line);

// The middle one, or the mean of the two in the middle. Throws std::invalid_argument for none.
double median(std::vector<double> values);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_LINE_FIT_H_
