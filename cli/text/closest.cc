#include "cli/text/closest.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>

namespace gradcube::cli {
namespace {

// Longer ones are no typing mistakes; and the time grows with the square of the length.
constexpr std::size_t kLongestWord = 64;

std::size_t distance(std::string_view from, std::string_view to) {
  std::vector<std::size_t> row(to.size() + 1);  // distances of a prefix of `from` to those of `to`
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < from.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < to.size(); ++j) {
      const std::size_t replaced = diagonal + (from[i] != to[j] ? 1 : 0);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::optional<std::string> closest(std::string_view word,
                                   const std::vector<std::string>& candidates) {
  if (word.size() > kLongestWord) return std::nullopt;
  std::optional<std::string> best;
  std::size_t least = word.size();
  for (const std::string& candidate : candidates) {
    const std::size_t wrong = distance(word, candidate);
    if (wrong >= least) continue;
    least = wrong;
    best = candidate;
  }
  return 3 * least <= word.size() ? best : std::nullopt;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto meant = closest(word, candidates);
  return meant ? fmt::format(" (did you mean {}?)", *meant) : "";
}

}  // namespace gradcube::cli
