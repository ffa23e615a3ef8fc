// BML: gradient synchronization on BCube(n,k) in 2(N-1)/(kN) of the time that a link takes for the
// whole gradient (BML, section 3.2, Algorithm 1). docs/bml.md explains it by example.
//
// The gradient has k shares, one for each of k threads: equal ones, unless the topology's levels
// have different rates (thread_shares.h). Thread t visits the levels t, t+1, ..., t+k-1 (mod k), so
// at every step each level is used by exactly one thread. On a part of the servers k counts the
// levels at which they have more than one digit: those under one switch have one thread, of one
// step.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_BML_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_BML_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs a switch in every dimension, and two ranks: throws a UsageError for any other topology,
// such as a torus, and for a single rank.
Plan make_bml_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_BML_H_
