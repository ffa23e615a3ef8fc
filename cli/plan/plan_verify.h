// `gradcube plan --verify`: whether a plan is an all-reduce. A plan of up to kMostExact servers is
// proved as a whole, a larger one by a sample that a seed draws (control/plan/verify.h).
#ifndef GRADCUBE_CLI_PLAN_PLAN_VERIFY_H_
#define GRADCUBE_CLI_PLAN_PLAN_VERIFY_H_

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>

#include "cli/text/report.h"
#include "control/plan/base/plan.h"

namespace gradcube::cli {

struct PlanVerifyOptions {
  bool wanted = false;
  std::optional<std::uint64_t> seed;  // none: the clock's
};

// --verify and --seed.
void add_plan_verify(CLI::App& command, PlanVerifyOptions& options);

// What was proved, as text or as one JSON object. Meanwhile a line on the terminal says so. Throws
// a control::PlanError for a plan that is no all-reduce.
Report verified(const control::Plan& plan, const PlanVerifyOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLAN_VERIFY_H_
