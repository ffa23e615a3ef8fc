#include "cli/measure/perf_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>

#include "cli/measure/perf_collective.h"
#include "control/model/line_fit.h"

namespace gradcube::cli {
namespace {

using nlohmann::ordered_json;  // keys stay in the order in which they are documented

template <typename T>
ordered_json or_null(const std::optional<T>& value) {
  return value ? ordered_json(*value) : ordered_json(nullptr);
}

bool has_elements(const PerfRow& row) { return row.kind != control::CollectiveKind::barrier; }

std::string_view type_name(const PerfRow& row) { return aggregation::data_type_name(row.type); }

std::string_view operation_name(const PerfRow& row) {
  return aggregation::operation_name(row.operation);
}

std::string microseconds(double seconds) {
  const double us = seconds * 1e6;
  return fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 1000 ? 1 : 0);
}

constexpr const char* kRowFormat =
    "{:>12} {:>11} {:>9} {:>8} {:>10} {:>10} {:>10} {:>8} {:>8} {:>10} {:>6} {:>6} {:>7}\n";

}  // namespace

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
  result.busbw = result.algbw * bus_factor(row.kind, links.ranks);
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

ordered_json row_json(const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  return {
      {"bytes", row.bytes()},
      {"count", row.count},
      {"dtype", has_elements(row) ? ordered_json(type_name(row)) : ordered_json(nullptr)},
      {"op", takes_operation(row.kind) ? ordered_json(operation_name(row)) : ordered_json(nullptr)},
      {"iterations", row.seconds.size()},
      {"in_flight", row.in_flight},
      {"seconds_min", derived.seconds_min},
      {"seconds_median", derived.seconds_median},
      {"seconds_max", derived.seconds_max},
      {"algbw", derived.algbw},
      {"busbw", derived.busbw},
      {"bound_seconds", or_null(derived.bound_seconds)},
      {"efficiency", or_null(derived.efficiency)},
      {"wrong", or_null(row.wrong)},
      {"resent", or_null(row.resent)}};
}

std::string table_head() {
  return fmt::format(fmt::runtime(kRowFormat), "bytes", "count", "type", "op", "min", "median",
                     "max", "algbw", "busbw", "bound", "eff", "wrong", "resent") +
         fmt::format(fmt::runtime(kRowFormat), "(B)", "(elements)", "", "", "(us)", "(us)", "(us)",
                     "(GB/s)", "(GB/s)", "(us)", "", "", "");
}

std::string table_row(const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  return fmt::format(
      fmt::runtime(kRowFormat), row.bytes(), row.count, has_elements(row) ? type_name(row) : "-",
      takes_operation(row.kind) ? operation_name(row) : "-", microseconds(derived.seconds_min),
      microseconds(derived.seconds_median), microseconds(derived.seconds_max),
      fmt::format("{:.3g}", derived.algbw), fmt::format("{:.3g}", derived.busbw),
      derived.bound_seconds ? microseconds(*derived.bound_seconds) : "-",
      derived.efficiency ? fmt::format("{:.3f}", *derived.efficiency) : "-",
      row.wrong ? std::to_string(*row.wrong) : "-", row.resent ? std::to_string(*row.resent) : "-");
}

}  // namespace gradcube::cli
