// The algorithms that can make a plan, by name.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_

#include <string_view>
#include <vector>

#include "control/plan/placement.h"
#include "control/plan/plan.h"
#include "control/plan/topology.h"

namespace gradcube::control {

// What a cluster runs.
inline constexpr std::string_view kDefaultAlgorithm = "bml";

std::vector<std::string_view> algorithm_names();

// Throws a UsageError when there is no such algorithm (naming those there are) or it does not fit
// the topology and the placement. `where` begins the message: "--algorithm".
Plan make_plan(std::string_view algorithm, const Topology& topology, const Placement& placement,
               std::string_view where);

// The same for all servers of the topology.
Plan make_plan(std::string_view algorithm, const Topology& topology, std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_
