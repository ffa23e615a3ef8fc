// How a hub is exchanged whose sums are made at a server that has none of the job's trainers:
// PHub's PBox (section 3.3), a root beside the workers.
#ifndef GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_
#define GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_

#include <string_view>

#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_choice.h"

namespace gradcube::control::hub {

// The plan of `ps` over the servers of `members` and the aggregator, which is its root. The
// placement has one rank for each of them. Throws a UsageError that begins with `where` for a
// server that there is not, one of the members, and where `ps` does not run.
PlanChoice aggregated(const Topology& topology, const Placement& members, ServerId aggregator,
                      std::string_view where);

}  // namespace gradcube::control::hub

#endif  // GRADCUBE_CONTROL_HUB_AGGREGATOR_PLAN_H_
