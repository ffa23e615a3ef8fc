#include "control/model/grid.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <stdexcept>
#include <vector>

namespace gradcube::control::model {

std::uint64_t checked_servers(std::uint64_t N) {
  if (N < 2 || N > kMostServers) {
    throw std::invalid_argument(fmt::format("N is {}, but it is 2..{}", N, kMostServers));
  }
  return N;
}

std::uint64_t grid_servers(std::span<const std::uint64_t> radices) {
  if (radices.empty()) {
    throw std::invalid_argument("there are 0 levels, but there is at least 1");
  }
  std::uint64_t N = 1;
  for (const std::uint64_t n : radices) {
    if (n < 2) throw std::invalid_argument(fmt::format("n is {}, but it is at least 2", n));
    if (N > kMostServers / n) {
      throw std::invalid_argument(
          fmt::format("{} servers are more than {}", fmt::join(radices, " x "), kMostServers));
    }
    N *= n;
  }
  return N;
}

std::uint64_t grid_servers(std::uint64_t n, unsigned levels) {
  return grid_servers(std::vector<std::uint64_t>(levels, n));
}

}  // namespace gradcube::control::model
