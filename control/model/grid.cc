#include "control/model/grid.h"

#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control::model {

std::uint64_t checked_servers(std::uint64_t N) {
  if (N < 2 || N > kMostServers) {
    throw std::invalid_argument(fmt::format("N is {}, but it is 2..{}", N, kMostServers));
  }
  return N;
}

std::uint64_t grid_servers(std::uint64_t n, unsigned levels) {
  if (n < 2) throw std::invalid_argument(fmt::format("n is {}, but it is at least 2", n));
  if (levels < 1) throw std::invalid_argument("there are 0 levels, but there is at least 1");
  std::uint64_t N = 1;
  for (unsigned i = 0; i < levels; ++i) {
    if (N > kMostServers / n) {
      throw std::invalid_argument(
          fmt::format("{}^{} servers are more than {}", n, levels, kMostServers));
    }
    N *= n;
  }
  return N;
}

}  // namespace gradcube::control::model
