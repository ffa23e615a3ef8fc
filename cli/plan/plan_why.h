// `gradcube plan --why SIZE`: what each candidate of the algorithm `auto` takes for an all-reduce
// of this size by the model (control/plan/plan_cost.h), which one auto runs, and what perf has last
// measured on the running cluster.
#ifndef GRADCUBE_CLI_PLAN_PLAN_WHY_H_
#define GRADCUBE_CLI_PLAN_PLAN_WHY_H_

#include <string>

#include "cli/plan/planned_cluster.h"

namespace gradcube::cli {

// Prints. algorithm: auto with costs; empty: auto. Throws UsageError, and SetupError where the
// running cluster cannot be asked.
int run_plan_why(const std::string& size, const SettingsOptions& cluster,
                 const std::string& algorithm, bool as_json);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLAN_WHY_H_
