// What `gradcube plan` shows beside plans themselves: a form of the command each.
#ifndef GRADCUBE_CLI_PLAN_PLAN_FORMS_H_
#define GRADCUBE_CLI_PLAN_PLAN_FORMS_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/cluster/settings_options.h"
#include "cli/text/report.h"
#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

// --- `plan --keys FILE`: where the chunks of a hub's keys are worked on (control/hub/binding.h),
// and the load of every path, port, NUMA node and lcore that follows.

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

// --- `plan --verify`: whether a plan is an all-reduce. One of up to 100 servers is proved as a
// whole, a larger one by a sample that a seed draws (control/plan/verify.h).

struct PlanVerifyOptions {
  bool wanted = false;
  std::optional<std::uint64_t> seed;  // none: the clock's
};

// --verify and --seed.
void add_plan_verify(CLI::App& command, PlanVerifyOptions& options);

// What was proved, as text or as one JSON object. Meanwhile a line on the terminal says so. Throws
// a control::PlanError for a plan that is no all-reduce.
Report verified(const control::Plan& plan, const PlanVerifyOptions& options);

// --- `plan --why SIZE`: what each candidate of the algorithm `auto` takes for an all-reduce of
// this size by the model (control/plan/plan_cost.h), which one auto runs.

// Prints. algorithm: auto with costs; empty: auto. Throws UsageError, and SetupError where the
// running cluster cannot be asked.
int run_plan_why(const std::string& size, const SettingsOptions& cluster,
                 const std::string& algorithm, bool as_json);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLAN_FORMS_H_
