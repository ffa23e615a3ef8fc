// How many servers the models' topologies have. The models go beyond what a cluster can run, up to
// kMostServers.
//
// Throws std::invalid_argument, with a message, when a bound does not hold.
#ifndef GRADCUBE_CONTROL_MODEL_GRID_H_
#define GRADCUBE_CONTROL_MODEL_GRID_H_

#include <cstdint>
#include <span>

namespace gradcube::control::model {

inline constexpr std::uint64_t kMostServers = 1'000'000'000;

// N, if it is 2..kMostServers: one server alone has nothing to synchronize.
std::uint64_t checked_servers(std::uint64_t N);

// The product of the radices, of which there is at least one and each at least 2: a generalized
// BCube has one for each level.
std::uint64_t grid_servers(std::span<const std::uint64_t> radices);

// N = n^levels, of BCube(n,k) with k levels and of a torus with h dimensions: n >= 2, levels >= 1.
std::uint64_t grid_servers(std::uint64_t n, unsigned levels);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_GRID_H_
