// Recursive halving and doubling over all ranks (Thakur et al., 2005; BlueConnect, section 2.2, Eq.
// 2). With N = 2^q ranks there is one thread of q steps. At step w of the aggregation stage each
// rank exchanges with the one whose number differs from its own in bit q-1-w alone: half of what
// both still work on goes each way. The broadcast stage doubles what each has, the bits in
// ascending order.
//
// Every step is a mesh over a digit of radix 2. As N is a power of two, so is the number of digits
// that the servers have at each level: each step lies within one level, and all peers are
// neighbours.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_HALVING_DOUBLING_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_HALVING_DOUBLING_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs a power of two of ranks, from 2: throws a UsageError else.
Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_HALVING_DOUBLING_H_
