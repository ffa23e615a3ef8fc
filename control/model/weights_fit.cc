#include "control/model/weights_fit.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>

namespace gradcube::control::model {
namespace {

constexpr unsigned kWeights = 3;
// Sets in the order in which they are preferred: bit i is weight i.
constexpr unsigned kSets[] = {0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111};
// By how much less a larger set's error must be, and what a pivot has to be of its column.
constexpr double kBetter = 1e-6;
constexpr double kSingular = 1e-9;

using Weights = std::array<double, kWeights>;
using Matrix = std::array<std::array<double, kWeights + 1>, kWeights>;

// Of the normal equations for the relative errors: sums of products of x / seconds, and the right
// side. Those of weights that are not in the set say that they are 0.
Matrix equations(std::span<const WeighedRow> rows, unsigned set) {
  Matrix matrix{};
  const auto in = [set](unsigned weight) { return (set >> weight & 1U) != 0; };
  for (unsigned i = 0; i < kWeights; ++i) {
    if (!in(i)) {
      matrix[i][i] = 1;
      continue;
    }
    for (const WeighedRow& row : rows) {
      if (row.seconds <= 0) continue;
      const double own = row.x[i] / row.seconds;
      for (unsigned j = 0; j < kWeights; ++j) {
        if (in(j)) matrix[i][j] += own * row.x[j] / row.seconds;
      }
      matrix[i][kWeights] += own;
    }
  }
  return matrix;
}

// By Gauss and Jordan; the matrix is symmetric and positive, or singular.
std::optional<Weights> solved(Matrix matrix) {
  Weights scale{};
  for (unsigned i = 0; i < kWeights; ++i) scale[i] = matrix[i][i];
  for (unsigned i = 0; i < kWeights; ++i) {
    if (!(matrix[i][i] > kSingular * scale[i])) return std::nullopt;
    for (unsigned row = 0; row < kWeights; ++row) {
      if (row == i) continue;
      const double factor = matrix[row][i] / matrix[i][i];
      for (unsigned j = i; j <= kWeights; ++j) matrix[row][j] -= factor * matrix[i][j];
    }
  }
  Weights weights{};
  for (unsigned i = 0; i < kWeights; ++i) weights[i] = matrix[i][kWeights] / matrix[i][i];
  return weights;
}

double error_of(std::span<const WeighedRow> rows, const Weights& weights) {
  double error = 0;
  for (const WeighedRow& row : rows) {
    if (row.seconds <= 0) continue;
    const double sum = std::inner_product(row.x.begin(), row.x.end(), weights.begin(), 0.0);
    error += (sum / row.seconds - 1) * (sum / row.seconds - 1);
  }
  return error;
}

}  // namespace

std::array<double, 3> fitted_weights(std::span<const WeighedRow> rows) {
  Weights best{};
  double least = std::numeric_limits<double>::infinity();
  for (const unsigned set : kSets) {
    const auto weights = solved(equations(rows, set));
    if (!weights || *std::min_element(weights->begin(), weights->end()) < 0) continue;
    const double error = error_of(rows, *weights);
    if (error >= least - kBetter) continue;
    least = error;
    best = *weights;
  }
  return best;
}

}  // namespace gradcube::control::model
