// The rows of `gradcube perf`: what was measured, and what is derived from it.
//
//   algbw        the gradient's bytes by the median time: how fast a trainer's gradient is reduced
//   busbw        algbw x 2(N-1)/N, as in nccl-tests: what a ring of N would move on each link
//   bound        2(N-1)/(kN) x the gradient's bytes at the links' rate: BML's synchronization time
//   (BML, section 3.4) efficiency   bound by median; 1 is the best that the links allow
//
// Bandwidths are in GB/s (10^9 bytes). With several collectives in flight a row's time is that of
// all of them, and so are the bytes that bandwidth and bound are reckoned with.
#ifndef GRADCUBE_CLI_PERF_REPORT_H_
#define GRADCUBE_CLI_PERF_REPORT_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "aggregation/element.h"

namespace gradcube::cli {

// What the derived figures need to know of the cluster.
struct PerfLinks {
  unsigned servers;
  unsigned levels;  // links per server that carry gradients at the same time: k
  std::optional<double> rate_bps;
};

struct PerfRow {
  std::uint64_t count = 0;
  aggregation::DataType type{};
  aggregation::Operation operation{};
  unsigned in_flight = 1;
  std::vector<double> seconds;                 // one per iteration, in the order of measurement
  std::optional<std::uint64_t> wrong;          // elements over all servers; empty without --check
  std::optional<std::uint64_t> retransmitted;  // segments, from the daemon's counters

  std::uint64_t bytes() const { return count * aggregation::element_bytes(type); }
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

nlohmann::ordered_json row_json(const PerfRow& row, const PerfLinks& links);

// The lines above the rows, and one row; each ends with a newline.
std::string table_head();
std::string table_row(const PerfRow& row, const PerfLinks& links);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_REPORT_H_
