#include "control/plan/algorithms/thread_shares.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <optional>

namespace gradcube::control {
namespace {

using Vector = std::vector<double>;
using Matrix = std::vector<Vector>;  // by row

// That the buffer is shared in: weights fit into kMaxWeight, and simple fractions are exact.
constexpr double kParts = 60'000;
constexpr double kSingular = 1e-12;  // a pivot that is 0 but for rounding; the entries are below 1
constexpr double kBetterBeyondRounding = 1 - 1e-9;  // not better by rounding alone

// [l][t]: the time of level l's links for all of the buffer, if thread t has it.
Matrix times_of(std::span<const LevelLinks> levels) {
  const std::size_t k = levels.size();
  double fastest = 0;
  for (const LevelLinks& level : levels) fastest = std::max(fastest, level.rate_bps);
  Matrix times(k, Vector(k));
  for (std::size_t t = 0; t < k; ++t) {
    double left = 1;
    for (std::size_t w = 0; w < k; ++w) {
      const std::size_t l = (t + w) % k;
      left /= levels[l].radix;
      times[l][t] = left * (levels[l].radix - 1) * fastest / levels[l].rate_bps;
    }
  }
  return times;
}

// The time of the level that takes longest.
double fullest(const Matrix& times, const Vector& shares) {
  double most = 0;
  for (const Vector& level : times) {
    most = std::max(most, std::inner_product(level.begin(), level.end(), shares.begin(), 0.0));
  }
  return most;
}

std::vector<std::size_t> members_of(unsigned set) {
  std::vector<std::size_t> members;
  for (std::size_t i = 0; set >> i != 0; ++i) {
    if ((set >> i & 1U) != 0) members.push_back(i);
  }
  return members;
}

// Solves matrix * x = (1, ..., 1) by elimination; nothing for a singular matrix.
std::optional<Vector> solved(Matrix matrix) {
  const std::size_t size = matrix.size();
  Vector right(size, 1);
  for (std::size_t i = 0; i < size; ++i) {
    std::size_t pivot = i;
    for (std::size_t row = i + 1; row < size; ++row) {
      if (std::abs(matrix[row][i]) > std::abs(matrix[pivot][i])) pivot = row;
    }
    if (std::abs(matrix[pivot][i]) < kSingular) return std::nullopt;
    std::swap(matrix[i], matrix[pivot]);
    std::swap(right[i], right[pivot]);
    for (std::size_t row = 0; row < size; ++row) {
      if (row == i) continue;
      const double factor = matrix[row][i] / matrix[i][i];
      for (std::size_t column = i; column < size; ++column) {
        matrix[row][column] -= factor * matrix[i][column];
      }
      right[row] -= factor * right[i];
    }
  }
  for (std::size_t i = 0; i < size; ++i) right[i] /= matrix[i][i];
  return right;
}

// The shares that make these levels equally full if only these threads have any; nothing where a
// share would be negative.
std::optional<Vector> shares_of(const Matrix& times, unsigned threads, unsigned levels) {
  const std::vector<std::size_t> columns = members_of(threads);
  Matrix part;
  for (const std::size_t l : members_of(levels)) {
    Vector& row = part.emplace_back();
    for (const std::size_t t : columns) row.push_back(times[l][t]);
  }
  const std::optional<Vector> solution = solved(std::move(part));
  if (!solution) return std::nullopt;
  if (*std::min_element(solution->begin(), solution->end()) < 0) return std::nullopt;
  const double sum = std::accumulate(solution->begin(), solution->end(), 0.0);
  Vector shares(times.size(), 0);
  for (std::size_t i = 0; i < columns.size(); ++i) shares[columns[i]] = (*solution)[i] / sum;
  return shares;
}

Vector best_shares(const Matrix& times) {
  const std::size_t k = times.size();
  Vector best(k, 1.0 / static_cast<double>(k));
  for (unsigned threads = 1; threads < 1U << k; ++threads) {
    for (unsigned levels = 1; levels < 1U << k; ++levels) {
      if (std::popcount(threads) != std::popcount(levels)) continue;
      const std::optional<Vector> shares = shares_of(times, threads, levels);
      if (shares && fullest(times, *shares) < fullest(times, best) * kBetterBeyondRounding)
        best = *shares;
    }
  }
  return best;
}

}  // namespace

std::vector<unsigned> balanced_weights(std::span<const LevelLinks> levels) {
  std::vector<unsigned> weights(levels.size(), 1);
  const auto has_rate_of_first = [&](const LevelLinks& level) {
    return level.rate_bps == levels.front().rate_bps;
  };
  const auto has_none = [](const LevelLinks& level) { return level.rate_bps == 0; };
  if (std::all_of(levels.begin(), levels.end(), has_rate_of_first) ||
      std::any_of(levels.begin(), levels.end(), has_none)) {
    return weights;
  }
  const Vector shares = best_shares(times_of(levels));
  unsigned divisor = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    weights[t] = std::max(1U, static_cast<unsigned>(std::lround(shares[t] * kParts)));
    divisor = std::gcd(divisor, weights[t]);
  }
  for (unsigned& weight : weights) weight /= divisor;
  return weights;
}

}  // namespace gradcube::control
