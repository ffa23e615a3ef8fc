// A cycle through all ranks of a logical grid on which each is a neighbour of the next, and the
// last of the first: they differ in the digit of one level, so one switch joins them.
//
// It is a mixed-radix Gray code, one level after the other. Of one level it is 0, 1, ..., n-1. Let
// C be the cycle of the levels so far, and the next level have the digits 0, ..., r-1: picture a
// row for each digit, with C in it. The cycle begins at the first rank of row 0. It goes through
// the others of row 0, through those of row 1 backwards, through those of row 2 forwards and so on.
// From the last row it comes back over the first rank of every row. Both ends of a row but its
// first rank are neighbours of that one, because C is a cycle: so it closes, whatever the radices
// are.
//
//   bcube:3,2    [0,0] [0,1] [0,2]   [1,2] [1,1]   [2,1] [2,2]   and back over [2,0] [1,0]
//
// Under one switch, and on a tree, all are neighbours: there it is the order of the ranks, so that
// each uplink of a tree carries one of the ring's flows each way.
//
// Of servers that form no grid it is the cycle of the smallest grid around them without those that
// are missing. Where one is, the next may be several hops away.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_SERVER_CYCLE_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_SERVER_CYCLE_H_

#include <span>
#include <vector>

#include "control/plan/base/placement.h"

namespace gradcube::control {

// The ranks of the placement in the order of the cycle, from rank 0 on. Of two ranks it is the way
// there and back.
std::vector<Rank> server_cycle(const Placement& placement);

// The same of those ranks of a grid that have digit 0 at all other levels than these, of which
// there is one.
std::vector<Rank> server_cycle(const Placement& placement, std::span<const GridDimension> levels);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_SERVER_CYCLE_H_
