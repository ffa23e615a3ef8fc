#include "control/plan/algorithms/server_cycle.h"

#include <algorithm>
#include <cstddef>

namespace gradcube::control {
namespace {

// The cycle of the levels of `row` and one more.
std::vector<Rank> with_level(const std::vector<Rank>& row, const GridDimension& level) {
  std::vector<Rank> cycle = {row[0]};
  for (unsigned digit = 0; digit < level.radix; ++digit) {
    for (std::size_t i = 1; i < row.size(); ++i) {
      cycle.push_back(row[digit % 2 == 0 ? i : row.size() - i] + digit * level.stride);
    }
  }
  for (unsigned digit = level.radix - 1; digit > 0; --digit) {
    cycle.push_back(row[0] + digit * level.stride);
  }
  return cycle;
}

}  // namespace

std::vector<Rank> server_cycle(const Placement& placement) {
  if (placement.is_grid()) return server_cycle(placement, placement.dimensions());
  const Placement grid = placement.surrounding_grid();
  std::vector<Rank> cycle;
  for (const Rank rank : server_cycle(grid, grid.dimensions())) {
    if (const auto here = placement.rank(grid.server(rank))) cycle.push_back(*here);
  }
  return cycle;
}

std::vector<Rank> server_cycle(const Placement& placement, std::span<const GridDimension> levels) {
  std::vector<Rank> cycle = {0};
  for (const GridDimension& level : levels) {
    if (cycle.size() > 1) {
      cycle = with_level(cycle, level);
      continue;
    }
    for (unsigned digit = 1; digit < level.radix; ++digit) cycle.push_back(digit * level.stride);
  }
  if (placement.space().levels() == 1) std::sort(cycle.begin(), cycle.end());
  return cycle;
}

}  // namespace gradcube::control
