#include "cli/measure/perf_row.h"

#include "cli/measure/perf_collective.h"
#include "control/model/line_fit.h"

namespace gradcube::cli {
PerfFigures figures(const PerfRow& row, const PerfLinks& links) {
  PerfFigures result;
  if (!row.seconds.empty()) {
    const auto [least, most] = std::minmax_element(row.seconds.begin(), row.seconds.end());
    result.seconds_min = *least;
    result.seconds_max = *most;
    result.seconds_median = control::model::median(row.seconds);
  }
  const double bytes = static_cast<double>(row.bytes()) * row.in_flight;
  if (result.seconds_median > 0) result.algbw = bytes / result.seconds_median / 1e9;
  result.busbw = result.algbw * (row.kind ? bus_factor(*row.kind, links.ranks) : 1);
  if (links.rate_bps && *links.rate_bps > 0 && links.busiest_share) {
    const double carried = static_cast<double>(row.bytes_on_links()) * row.in_flight;
    result.bound_seconds = *links.busiest_share * carried * 8 / *links.rate_bps;
    if (bytes > 0 && result.seconds_median > 0) {
      result.efficiency = *result.bound_seconds / result.seconds_median;
    }
  }
  return result;
}

std::optional<double> average_busbw(const std::vector<PerfRow>& rows, const PerfLinks& links) {
  double sum = 0;
  std::size_t count = 0;
  for (const PerfRow& row : rows) {
    if (row.bytes() == 0) continue;
    sum += figures(row, links).busbw;
    ++count;
  }
  if (count == 0) return std::nullopt;
  return sum / static_cast<double>(count);
}

}  // namespace gradcube::cli
