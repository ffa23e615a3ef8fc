// Ring: the flat ring of all servers (HiPS's RS; BML, section 2.2). There is one thread and one
// step of the pattern ring, over a cycle on which consecutive servers are neighbours
// (server_cycle.h): on a star the order of the servers. It is what the papers compare with: on
// BCube it uses one port of each server to send and one to receive (HiPS, section 4.1).
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_RING_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_RING_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// On a torus there are two threads, which go round in opposite directions. Needs 2 to 256 ranks:
// throws a UsageError else.
Plan make_ring_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_RING_H_
