// The topologies that the tests of plans go through.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/topology.h"

namespace gradcube::control {

inline Topology mixed_topology(const std::vector<unsigned>& radices) {
  std::vector<Dimension> dimensions;
  for (unsigned level = 0; level < radices.size(); ++level) {
    dimensions.push_back({radices[level], level, 0, Link::switched});
  }
  return Topology("bcube", dimensions);
}

// Every bcube(n,k) with at most `servers` servers.
inline std::vector<Topology> small_cubes(uint32_t servers) {
  std::vector<Topology> all;
  for (unsigned n = 2; n <= servers; ++n) {
    uint64_t count = n;
    for (unsigned k = 1; count <= servers && k <= kMaxDimensions; ++k, count *= n) {
      all.push_back(parse_topology("bcube:" + std::to_string(n) + "," + std::to_string(k), "test"));
    }
  }
  return all;
}

// The same, and some whose levels have different radices.
inline std::vector<Topology> small_topologies(uint32_t servers) {
  std::vector<Topology> all = small_cubes(servers);
  for (const std::vector<unsigned>& radices : std::vector<std::vector<unsigned>>{
           {2, 3}, {5, 2}, {2, 3, 4}, {4, 2, 3}, {2, 2, 5, 3}, {9, 2, 4}}) {
    const Topology topology = mixed_topology(radices);
    if (topology.servers() <= servers) all.push_back(topology);
  }
  return all;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_
