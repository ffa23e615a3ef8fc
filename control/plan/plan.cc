#include "control/plan/plan.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <stdexcept>

namespace gradcube::control {

std::string_view stage_name(Stage stage) {
  return stage == Stage::aggregation ? "aggregation" : "broadcast";
}

Plan::Plan(std::string algorithm, Topology topology,
           const std::vector<std::vector<unsigned>>& levels)
    : algorithm_(std::move(algorithm)), topology_(std::move(topology)) {
  if (levels.empty()) throw std::invalid_argument("a plan has at least one thread");
  std::vector<unsigned> all(topology_.levels());
  std::iota(all.begin(), all.end(), 0U);
  for (std::size_t t = 0; t < levels.size(); ++t) {
    if (!std::is_permutation(levels[t].begin(), levels[t].end(), all.begin(), all.end())) {
      throw std::invalid_argument(fmt::format(
          "thread {} does not visit every level 0..{} exactly once", t, topology_.levels() - 1));
    }
    std::copy(levels[t].begin(), levels[t].end(), levels_.emplace_back().begin());
  }
}

PieceSet Plan::piece_set(ServerId server, unsigned thread, unsigned step) const {
  PieceSet set{.thread = thread, .digits = {}};
  for (unsigned w = 0; w < steps(); ++w) {
    const unsigned l = level(thread, w);
    set.digits[l] = w <= step ? static_cast<int>(space().digit(server, l)) : PieceSet::kAnyDigit;
  }
  return set;
}

std::vector<Exchange> Plan::exchanges(ServerId server, unsigned thread, Stage stage,
                                      unsigned step) const {
  const unsigned aggregation_step = mirrored(stage, step);
  const unsigned l = level(thread, aggregation_step);
  const PieceSet own = piece_set(server, thread, aggregation_step);
  std::vector<Exchange> result;
  result.reserve(space().radix(l) - 1);
  for (unsigned digit = 0; digit < space().radix(l); ++digit) {
    if (digit == space().digit(server, l)) continue;
    const ServerId other = space().with_digit(server, l, digit);
    const PieceSet theirs = piece_set(other, thread, aggregation_step);
    if (stage == Stage::aggregation) {
      result.push_back({other, theirs, own});
    } else {
      result.push_back({other, own, theirs});
    }
  }
  return result;
}

}  // namespace gradcube::control
