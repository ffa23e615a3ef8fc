#include "control/model/mgwfbp_model.h"

#include <bit>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/grid.h"

namespace gradcube::control::model {
namespace {

// lg N, of a power of two.
double log2_of(std::uint64_t N) {
  if (!std::has_single_bit(checked_servers(N))) {
    throw std::invalid_argument(fmt::format("N is {}, but it is a power of two", N));
  }
  return std::countr_zero(N);
}

}  // namespace

AllReduceCost binary_tree_cost(std::uint64_t N, const NodeCosts& costs) {
  const double rounds = log2_of(N);
  return {2 * costs.alpha * rounds, (2 * costs.beta + costs.gamma) * rounds};
}

AllReduceCost recursive_doubling_cost(std::uint64_t N, const NodeCosts& costs) {
  const double rounds = log2_of(N);
  return {costs.alpha * rounds, (costs.beta + costs.gamma) * rounds};
}

AllReduceCost halving_doubling_cost(std::uint64_t N, const NodeCosts& costs) {
  const double rounds = log2_of(N);
  const double both = 2 * costs.beta + costs.gamma;
  return {2 * costs.alpha * rounds, both - both / static_cast<double>(N)};
}

AllReduceCost ring_cost(std::uint64_t N, const NodeCosts& costs) {
  const auto nodes = static_cast<double>(checked_servers(N));
  const double share = (nodes - 1) / nodes;
  return {2 * (nodes - 1) * costs.alpha, 2 * share * costs.beta + share * costs.gamma};
}

}  // namespace gradcube::control::model
