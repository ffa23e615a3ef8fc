// What `gradcube model fit` measures on the running cluster: all-reduces of two neighbours on each
// level, and small ones of all servers by several plans.
//
// The trainers are threads of this process. Progress goes to standard error if that is a terminal.
// Throws control::SetupError: servers of other hosts, a level without two neighbours, what a
// trainer is refused.
#ifndef GRADCUBE_CLI_MODEL_FIT_MEASUREMENT_H_
#define GRADCUBE_CLI_MODEL_FIT_MEASUREMENT_H_

#include <vector>

#include "cli/cluster/running_cluster.h"
#include "cli/model/fitted_costs.h"

namespace gradcube::cli {

// From level 0 up. `iterations` of each size; the median counts.
std::vector<LevelLine> fit_levels(const RunningCluster& cluster, unsigned iterations);

// The default plan first.
std::vector<TimedPlan> measure_plans(const RunningCluster& cluster, unsigned iterations);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MODEL_FIT_MEASUREMENT_H_
