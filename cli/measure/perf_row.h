// A row of `gradcube perf`: what was measured, and what is derived from it.
//
//   algbw        bytes of the whole buffer by the median time: how fast a trainer's gradient is
//                reduced
//   busbw        algbw x a factor of the kind, as in nccl-tests; of an all-reduce 2(N-1)/N: what
//                each link of a ring of N would carry
//   bound        the time that the plan's busiest link takes for its share of the buffer (in a
//                reproducible job, of what carries it, reproducible.h); of an
//                all-reduce by BML 2(N-1)/(kN): its synchronization time (BML, section 3.4)
//   efficiency   bound by median; 1 is the best that the links allow
//
// A barrier has no bytes, and so no bound.
//
// Bandwidths are in GB/s (10^9 bytes per second). With several collectives in flight, the time of a
// row is that of all of them, and so are the bytes in its bandwidths and bound.
#ifndef GRADCUBE_CLI_MEASURE_PERF_ROW_H_
#define GRADCUBE_CLI_MEASURE_PERF_ROW_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "aggregation/element.h"
#include "cli/measure/work_counts.h"
#include "control/plan/collective_kind.h"

namespace gradcube::cli {

// What the derived figures need to know of the cluster.
struct PerfLinks {
  std::uint32_t ranks = 0;
  std::optional<double> busiest_share{};  // of the busiest_link()
  std::optional<double> rate_bps{};       // of the same
};

struct PerfRow {
  // Nothing: messages, of which busbw is algbw.
  std::optional<control::CollectiveKind> kind = control::CollectiveKind::all_reduce;
  std::uint64_t count = 0;  // elements of the whole buffer
  aggregation::DataType type{};
  aggregation::Operation operation{};
  std::size_t carried_bytes = 0;  // of an element on the links; 0: those of the type
  unsigned in_flight = 1;
  std::vector<double> seconds{};  // one per iteration, in the order of measurement
  // Elements over all servers; of a barrier, trainers. Empty without --check.
  std::optional<std::uint64_t> wrong{};
  // Of all iterations, those of the warm-up, too: what daemons have done until the end, and what
  // trainers did while it was measured, if they were asked to count that.
  std::optional<WorkCounts> work{};
  std::uint64_t operations = 0;  // that it is of

  std::uint64_t bytes() const { return count * aggregation::element_bytes(type); }
  std::uint64_t bytes_on_links() const {
    return carried_bytes == 0 ? bytes() : count * carried_bytes;
  }
};

struct PerfFigures {
  double seconds_min = 0;
  double seconds_median = 0;
  double seconds_max = 0;
  double algbw = 0;
  double busbw = 0;
  std::optional<double> bound_seconds;
  std::optional<double> efficiency;
};

PerfFigures figures(const PerfRow& row, const PerfLinks& links);

// The mean of the rows' busbw, as nccl-tests prints it; rows without bytes do not count. Empty when
// no row counts.
std::optional<double> average_busbw(const std::vector<PerfRow>& rows, const PerfLinks& links);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_MEASURE_PERF_ROW_H_
