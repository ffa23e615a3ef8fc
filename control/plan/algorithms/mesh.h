// Mesh: the flat parameter server of peers (BML, section 2.2: P2P). Every server is the parameter
// server of one N-th of the gradient, and exchanges with all others directly. There is one thread
// and one step; on BCube most peers are several hops apart, and relays lead there. It is what the
// papers compare with.
//
// Level by level the routes load every link alike, but in one round several of them share a link.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_MESH_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_MESH_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs 2 to 256 ranks: throws a UsageError else.
Plan make_mesh_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_MESH_H_
