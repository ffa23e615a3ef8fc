#include "cli/perf/measured_row.h"

#include <fmt/format.h>

#include "cli/cluster/control_client.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/harness.h"
#include "cli/status/status_text.h"
#include "cli/text/progress_line.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using control::SetupError;

// What the switches do to frames.
std::string disturbances(const control::RunDirectory& directory) {
  try {
    return fmt::format("; impairments: {}; `gradcube status` shows more",
                       impairments_summary(ask_status(directory)));
  } catch (const SetupError& error) {
    return fmt::format("; {}", error.what());
  }
}

}  // namespace

PerfRow measured_row(const control::RunDirectory& directory, const control::Placement& placement,
                     const std::function<std::string()>& progress,
                     const std::function<PerfRow()>& measure) {
  const ProgressLine line(progress);
  const auto before = work_of_daemons(directory);
  try {
    PerfRow row = measure();
    const WorkCounts of_trainers = row.work.value_or(WorkCounts{});
    const auto after = work_of_daemons(directory);
    row.work = before && after ? after->since(*before) : std::nullopt;
    if (row.work) *row.work += of_trainers;
    return row;
  } catch (const IterationTimeout& error) {
    throw SetupError(error.what() + disturbances(directory));
  } catch (const Error& error) {
    throw SetupError(error.what() + ended_meanwhile(error, directory, placement));
  }
}

}  // namespace gradcube::cli
