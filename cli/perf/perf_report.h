// What `gradcube perf` reports of a row (measure/perf_row.h).
#ifndef GRADCUBE_CLI_PERF_PERF_REPORT_H_
#define GRADCUBE_CLI_PERF_PERF_REPORT_H_

#include <vector>

#include "cli/measure/perf_row.h"
#include "cli/text/report.h"

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

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_REPORT_H_
