// base/topology.h, for the folders above this one.
#ifndef GRADCUBE_CONTROL_PLAN_TOPOLOGY_H_
#define GRADCUBE_CONTROL_PLAN_TOPOLOGY_H_

#include "control/plan/base/topology.h"

#endif  // GRADCUBE_CONTROL_PLAN_TOPOLOGY_H_
