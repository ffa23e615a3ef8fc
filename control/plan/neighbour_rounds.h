// The links between neighbours in rounds. In a round a server has one link at most, so that all
// links of a round can be measured at the same time: each has both of its ports to itself.
//
// Where a switch joins n servers, each of them meets each other one as in a tournament: n-1 rounds,
// or n if n is odd. A ring of cables takes two rounds, or three if n is odd. All switches, or
// rings, of a level have the same rounds; the levels follow each other.
#ifndef GRADCUBE_CONTROL_PLAN_NEIGHBOUR_ROUNDS_H_
#define GRADCUBE_CONTROL_PLAN_NEIGHBOUR_ROUNDS_H_

#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::control {

struct NeighbourLink {
  unsigned level = 0;
  ServerId first = 0;  // the lower number
  ServerId second = 0;

  bool operator==(const NeighbourLink&) const = default;
};

// Every pair of neighbours once; in a round by ascending `first`.
std::vector<std::vector<NeighbourLink>> neighbour_rounds(const Topology& topology);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_NEIGHBOUR_ROUNDS_H_
