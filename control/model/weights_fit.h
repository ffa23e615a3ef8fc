// Three weights, none of them negative, that make sums of what was measured: seconds = w0 x0 + w1
// x1 + w2 x2, for several rows of x. Of `gradcube model fit`.
//
// Least squares of the relative errors, so that long times count no more than short ones. Where
// weights would be negative, or the rows do not tell them apart, some are 0: of all sets of weights
// that may be others, the one with the least error, and of equal errors the one with the fewest and
// first of them.
//
// A pure function.
#ifndef GRADCUBE_CONTROL_MODEL_WEIGHTS_FIT_H_
#define GRADCUBE_CONTROL_MODEL_WEIGHTS_FIT_H_

#include <array>
#include <span>

namespace gradcube::control::model {

struct WeighedRow {
  std::array<double, 3> x{};
  double seconds = 0;  // more than 0; other rows do not count
};

std::array<double, 3> fitted_weights(std::span<const WeighedRow> rows);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_WEIGHTS_FIT_H_
