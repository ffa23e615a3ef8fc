// `gradcube plan --why SIZE`: what each candidate of the algorithm `auto` takes for an all-reduce
// of this size by the model (control/plan/plan_cost.h), which one auto runs, and what perf has last
// measured on the running cluster.
#ifndef GRADCUBE_CLI_PLAN_PLAN_WHY_H_
#define GRADCUBE_CLI_PLAN_PLAN_WHY_H_

#include <string>

#include "cli/plan/planned_cluster.h"

namespace gradcube::cli {

struct PlanWhyOptions {
  std::string size;
  TopologyOptions topology;
  std::string algorithm;  // auto with costs; empty: auto
  bool json = false;
};

// Prints. Throws UsageError, and SetupError where the running cluster cannot be asked.
int run_plan_why(const PlanWhyOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLAN_WHY_H_
