// A row as all commands measure it.
#ifndef GRADCUBE_CLI_PERF_MEASURED_ROW_H_
#define GRADCUBE_CLI_PERF_MEASURED_ROW_H_

#include <functional>
#include <string>

#include "cli/measure/perf_row.h"
#include "control/plan/base/placement.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// What `measure` returns, with what was sent again meanwhile, by the daemon's counters. progress:
// what is being done, shown if it takes long. Throws a SetupError: what a trainer said, with what
// has ended meanwhile, or with what disturbs the links where an iteration took too long.
PerfRow measured_row(const control::RunDirectory& directory, const control::Placement& placement,
                     const std::function<std::string()>& progress,
                     const std::function<PerfRow()>& measure);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_MEASURED_ROW_H_
