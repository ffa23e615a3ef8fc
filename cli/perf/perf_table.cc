#include "cli/perf/perf_table.h"

#include <fmt/format.h>

#include "cli/cluster/control_client.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/harness.h"
#include "cli/status/status_text.h"
#include "cli/text/output.h"
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

PerfTable::PerfTable(const control::RunDirectory& directory, const control::Placement& placement,
                     ReportTable& table, bool shown, const std::string& title)
    : directory_(directory), placement_(placement), table_(table), shown_(shown) {
  if (!shown) return;
  write_output(title + table.head());
  flush_output();
}

PerfRow PerfTable::add(const std::function<std::string()>& progress,
                       const std::function<PerfRow()>& measure,
                       const std::function<std::vector<Cell>(const PerfRow&)>& cells) {
  PerfRow row = measured(progress, measure);
  wrong_ += row.wrong.value_or(0);
  table_.add(cells(row));
  if (shown_) {
    write_output(table_.last());
    flush_output();
  }
  return row;
}

PerfRow PerfTable::measured(const std::function<std::string()>& progress,
                            const std::function<PerfRow()>& measure) const {
  const ProgressLine line(progress);
  const auto before = work_of_daemons(directory_);
  try {
    PerfRow row = measure();
    const WorkCounts of_trainers = row.work.value_or(WorkCounts{});
    const auto after = work_of_daemons(directory_);
    row.work = before && after ? after->since(*before) : std::nullopt;
    if (row.work) *row.work += of_trainers;
    return row;
  } catch (const IterationTimeout& error) {
    throw SetupError(error.what() + disturbances(directory_));
  } catch (const Error& error) {
    throw SetupError(error.what() + ended_meanwhile(error, directory_, placement_));
  }
}

}  // namespace gradcube::cli
