#include "cli/perf/perf_report.h"

#include <fmt/format.h>

#include "cli/cluster/control_client.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/harness.h"
#include "cli/measure/perf_collective.h"
#include "cli/status/status_text.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using control::CollectiveKind;
using control::SetupError;

Cell microseconds(double seconds) {
  const double us = seconds * 1e6;
  return {fmt::format("{:.{}f}", us, us < 100 ? 2 : us < 1000 ? 1 : 0), seconds};
}

Cell plain_count(std::uint64_t number) { return cell::plain(number); }
Cell ratio(double value) { return cell::plain(value, "{:.3f}"); }

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

std::vector<ReportColumn> perf_end_columns() {
  return {{"eff", "efficiency", Align::right, "", 5},
          {"wrong", "wrong", Align::right, "", 5},
          {"resent", "resent", Align::right, "", 6}};
}

std::vector<Cell> perf_end_cells(const PerfRow& row, const PerfFigures& derived) {
  return {cell::known(derived.efficiency, ratio), cell::known(row.wrong, plain_count),
          cell::known(row.work, [](const WorkCounts& work) { return cell::plain(work.resent); })};
}

std::vector<ReportColumn> work_columns() {
  return {{"segments", "segments_each", Align::right, "(each)", 8},
          {"acks", "acknowledgements_each", Align::right, "(each)", 7},
          {"sleeps", "sleeps_each", Align::right, "(each)", 7},
          {"cpu", "cpu_seconds_each", Align::right, "(us)", 9}};
}

std::vector<Cell> work_cells(const PerfRow& row) {
  if (!row.work || row.operations == 0) {
    return {cell::none(), cell::none(), cell::none(), cell::none()};
  }
  const auto each = [&row](std::uint64_t number) {
    return static_cast<double>(number) / static_cast<double>(row.operations);
  };
  const auto count = [&each](std::uint64_t number) { return cell::plain(each(number), "{:.1f}"); };
  return {count(row.work->segments), count(row.work->acknowledgements), count(row.work->sleeps),
          microseconds(each(row.work->cpu_ns) * 1e-9)};
}

Cell milliseconds_cell(double seconds) { return {fmt::format("{:.3f}", seconds * 1e3), seconds}; }

std::vector<ReportColumn> perf_columns() {
  std::vector<ReportColumn> columns = {{"bytes", "bytes", Align::right, "(B)", 12},
                                       {"count", "count", Align::right, "(elements)", 10},
                                       {"type", "dtype", Align::right, "", 8},
                                       {"op", "op", Align::right, "", 7},
                                       {{}, "iterations"},
                                       {{}, "in_flight"},
                                       {"min", "seconds_min", Align::right, "(us)", 9},
                                       {"median", "seconds_median", Align::right, "(us)", 9},
                                       {"max", "seconds_max", Align::right, "(us)", 9},
                                       {"algbw", "algbw", Align::right, "(GB/s)", 7},
                                       {"busbw", "busbw", Align::right, "(GB/s)", 7},
                                       {"bound", "bound_seconds", Align::right, "(us)", 9}};
  for (ReportColumn& column : perf_end_columns()) columns.push_back(std::move(column));
  return columns;
}

std::vector<Cell> perf_cells(const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  std::vector<Cell> cells = {
      plain_count(row.bytes()),
      plain_count(row.count),
      row.kind == CollectiveKind::barrier ? cell::none() : aggregation::data_type_name(row.type),
      row.kind && takes_operation(*row.kind) ? aggregation::operation_name(row.operation)
                                             : cell::none(),
      cell::told(row.seconds.size()),
      cell::told(row.in_flight),
      microseconds(derived.seconds_min),
      microseconds(derived.seconds_median),
      microseconds(derived.seconds_max),
      cell::plain(derived.algbw, "{:.3g}"),
      cell::plain(derived.busbw, "{:.3g}"),
      cell::known(derived.bound_seconds, microseconds)};
  for (Cell& each : perf_end_cells(row, derived)) cells.push_back(std::move(each));
  return cells;
}

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
