// What `gradcube perf` reports of a row (measure/perf_row.h), and the table in which rows are shown
// as they are measured.
#ifndef GRADCUBE_CLI_PERF_PERF_REPORT_H_
#define GRADCUBE_CLI_PERF_PERF_REPORT_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/measure/perf_row.h"
#include "cli/text/report.h"
#include "control/plan/base/placement.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// The columns of collectives and messages, wide enough to show rows as they come, and a row's cells
// in them. "dtype" and "op" are null where the kind has none.
std::vector<ReportColumn> perf_columns();
std::vector<Cell> perf_cells(const PerfRow& row, const PerfLinks& links);

// Times in milliseconds: "68.775".
Cell milliseconds_cell(double seconds);
// What both tables end with: the efficiency, and what was wrong and sent again.
std::vector<ReportColumn> perf_end_columns();
std::vector<Cell> perf_end_cells(const PerfRow& row, const PerfFigures& derived);

// What each operation cost beside its time (measure/work_counts.h).
std::vector<ReportColumn> work_columns();
std::vector<Cell> work_cells(const PerfRow& row);

// The rows of a command.
class PerfTable {
 public:
  // Prints the title and the table's head if `shown`. All but the title must outlive this.
  PerfTable(const control::RunDirectory& directory, const control::Placement& placement,
            ReportTable& table, bool shown, const std::string& title);

  // What `measure` returns, with what was sent again meanwhile, by the daemon's counters: cells()
  // makes a row of it. progress: what is being done, shown if it takes long. Throws a SetupError:
  // what a trainer said, with what has ended meanwhile, or with what disturbs the links where an
  // iteration took too long.
  PerfRow add(const std::function<std::string()>& progress, const std::function<PerfRow()>& measure,
              const std::function<std::vector<Cell>(const PerfRow&)>& cells);

  std::uint64_t wrong() const { return wrong_; }  // of all rows

 private:
  PerfRow measured(const std::function<std::string()>& progress,
                   const std::function<PerfRow()>& measure) const;

  const control::RunDirectory& directory_;
  const control::Placement& placement_;
  ReportTable& table_;
  const bool shown_;
  std::uint64_t wrong_ = 0;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_REPORT_H_
