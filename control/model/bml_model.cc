#include "control/model/bml_model.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <stdexcept>

#include "control/model/grid.h"

namespace gradcube::control::model {
namespace {

double checked_nics(unsigned nics) {
  if (nics == 0) throw std::invalid_argument("a server has no NIC, but it has at least 1");
  return nics;
}

}  // namespace

double bml_piece_seconds(std::uint64_t n, unsigned k, double t_f) {
  const auto N = static_cast<double>(grid_servers(n, k));
  return t_f / (k * N);
}

double bml_step_seconds(std::uint64_t n, unsigned k, unsigned w, double t_f) {
  const auto N = static_cast<double>(grid_servers(n, k));
  if (w >= k) throw std::invalid_argument(fmt::format("step {} of {}", w, k));
  const auto radix = static_cast<double>(n);
  return N / std::pow(radix, w + 1) * (radix - 1) * bml_piece_seconds(n, k, t_f);
}

double bml_gst(std::uint64_t n, unsigned k, double t_f) {
  const auto N = static_cast<double>(grid_servers(n, k));
  return 2 * (N - 1) * bml_piece_seconds(n, k, t_f);
}

double bml_level_share(std::span<const std::uint64_t> radices, unsigned level) {
  grid_servers(radices);
  const std::size_t k = radices.size();
  if (level >= k) throw std::invalid_argument(fmt::format("level {} of {}", level, k));
  const auto n = static_cast<double>(radices[level]);
  double share = 0;
  double before = 1;  // n_t ... n_(l-1)
  for (std::size_t w = 0; w < k; ++w) {
    share += (n - 1) / (n * before);
    before *= static_cast<double>(radices[(level + k - w - 1) % k]);
  }
  return share / static_cast<double>(k);
}

double bml_gst(std::span<const std::uint64_t> radices, double t_f) {
  double busiest = 0;
  for (unsigned level = 0; level < radices.size(); ++level) {
    busiest = std::max(busiest, bml_level_share(radices, level));
  }
  return 2 * busiest * t_f;
}

double fat_tree_gst(std::uint64_t N, double t_f, unsigned nics) {
  const auto servers = static_cast<double>(checked_servers(N));
  return 2 * (servers - 1) / servers * t_f / checked_nics(nics);
}

std::uint64_t bcube_switches(std::uint64_t n, unsigned k) { return k * (grid_servers(n, k) / n); }

double fat_tree_switches(std::uint64_t N, std::uint64_t n, unsigned nics) {
  if (n < 2) throw std::invalid_argument(fmt::format("n is {}, but it is at least 2", n));
  return 5 * static_cast<double>(checked_servers(N)) / static_cast<double>(n) * checked_nics(nics);
}

}  // namespace gradcube::control::model
