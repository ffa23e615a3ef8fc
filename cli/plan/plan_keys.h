// `gradcube plan --keys FILE`: where the chunks of a hub's keys are worked on
// (control/hub/binding.h), and the load of every path, port, NUMA node and lcore that follows.
#ifndef GRADCUBE_CLI_PLAN_PLAN_KEYS_H_
#define GRADCUBE_CLI_PLAN_PLAN_KEYS_H_

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cli/text/report.h"
#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

struct PlanKeysOptions {
  std::string file;
  std::string chunk;  // "": control::hub::default_chunk_bytes()
  std::string port_nodes;
  std::string lcore_nodes;
  std::string optimizer;
};

// Call it when the command has its other options.
void add_plan_keys(CLI::App& command, PlanKeysOptions& options);

// What to print. Throws UsageError for a file or an option that is bad.
Report keys_report(const control::Plan& plan, std::vector<control::Lcore> lcores,
                   const PlanKeysOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLAN_KEYS_H_
