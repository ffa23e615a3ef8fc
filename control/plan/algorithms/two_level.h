// The two-level scheme (BlueConnect, section 2.3; PHub, section 3.4): the servers under each switch
// of the lowest level send to one of them, these do an all-reduce among themselves, and each sends
// the sum to those under its switch. The others of a group do nothing meanwhile, which is what
// BlueConnect improves on.
//
// There is one thread. Its first step has the pattern root; then follows the all-reduce of the
// papers: halving and doubling for a power of two of groups, else a ring, the cheaper by
// BlueConnect's Eq. 3. The ring goes from neighbour to neighbour (server_cycle.h).
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_TWO_LEVEL_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_TWO_LEVEL_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs a switch in every dimension, several digits of the servers at two levels or more, and at
// most 256 groups unless they are a power of two: throws a UsageError else.
Plan make_two_level_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_TWO_LEVEL_H_
