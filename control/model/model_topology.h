// The topologies that the papers compare, as the models see them. They need no plan, and may have
// more servers than a cluster.
//
//   bcube:n,k   BCube(n,k) as BML counts: k levels of n-port switches, N = n^k servers
//   bcube:4x3x2 a generalized BCube: a radix for each level, the highest first
//   torus:n,h   a torus of h dimensions with n servers in each ring, N = n^h
//   star:N      N servers around one switch; it is bcube:N,1
//   fattree:N   N servers on a non-blocking Fat-Tree. BML and other papers write Fat-Tree(n) for
//               one of n-port switches, which has n^3/4 servers: Fat-Tree(4) is fattree:16
//
// An immutable value. Bounds: n and N at least 2, 1..16 levels, at most kMostServers (grid.h).
#ifndef GRADCUBE_CONTROL_MODEL_MODEL_TOPOLOGY_H_
#define GRADCUBE_CONTROL_MODEL_MODEL_TOPOLOGY_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace gradcube::control::model {

struct ModelTopology {
  enum class Kind { bcube, torus, star, fattree };

  Kind kind = Kind::bcube;
  // By level: how many servers differ in its digit alone. Of a star and a Fat-Tree one number, N.
  std::vector<std::uint64_t> radices = {2};

  unsigned levels() const { return static_cast<unsigned>(radices.size()); }  // k or h
  bool uniform() const;  // all radices are equal, as the papers have it
  std::uint64_t servers() const;
  std::string spec() const;  // "bcube:3,2": what parse_model_topology() reads
};

// Throws a UsageError, whose message begins with `where`: "--topology".
ModelTopology parse_model_topology(std::string_view spec, std::string_view where);

}  // namespace gradcube::control::model

#endif  // GRADCUBE_CONTROL_MODEL_MODEL_TOPOLOGY_H_
