// The rows of a `gradcube perf` command: each is measured, and shown as it comes.
#ifndef GRADCUBE_CLI_PERF_PERF_TABLE_H_
#define GRADCUBE_CLI_PERF_PERF_TABLE_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "cli/measure/perf_row.h"
#include "cli/text/report.h"
#include "control/plan/base/placement.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

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

#endif  // GRADCUBE_CLI_PERF_PERF_TABLE_H_
