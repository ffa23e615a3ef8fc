#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/available_memory.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/measurements.h"
#include "cli/measure/oracle.h"
#include "cli/measure/perf_collective.h"
#include "cli/measure/perf_runner.h"
#include "cli/perf/measured_row.h"
#include "cli/perf/perf_cluster.h"
#include "cli/perf/perf_hub.h"
#include "cli/perf/perf_messages.h"
#include "cli/perf/perf_options.h"
#include "cli/perf/perf_report.h"
#include "cli/text/command.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "control/base/errors.h"
#include "control/plan/base/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using nlohmann::json;

// The plan that the row ran; the engines choose by the bytes that travel.
const control::Plan& plan_of(const PerfCluster& cluster, const PerfRow& row) {
  return cluster.choice.plan_of(*row.kind, row.bytes_on_links());
}

// The links as the plan that the row ran uses them.
PerfLinks links_of(const PerfCluster& cluster, const PerfRow& row) {
  return cluster.links(*row.kind, row.bytes_on_links());
}

// What the figures are of: "reduce to rank 3 by bml, ". Nothing for what is the default.
std::string head_of(const PerfSettings& settings) {
  using control::CollectiveKind;
  std::string text;
  if (settings.kind != CollectiveKind::all_reduce) text = perf_name(settings.kind);
  if (settings.kind == CollectiveKind::broadcast) text += fmt::format(" from {}", settings.root);
  if (settings.kind == CollectiveKind::reduce) text += fmt::format(" to {}", settings.root);
  if (!settings.algorithm.empty()) {
    text += fmt::format("{}{}", text.empty() ? "" : " by ", settings.algorithm);
  }
  if (settings.reproducible) text += fmt::format("{}reproducible", text.empty() ? "" : ", ");
  return text.empty() ? "" : text + ", ";
}

std::string title_of(const PerfCluster& cluster, const PerfSettings& settings,
                     const std::string& job) {
  const std::string algorithm = cluster.unusual_algorithm();
  return fmt::format(
      "# {}{}{}, job {}\n", head_of(settings),
      algorithm.empty() ? "" : fmt::format("{} as the servers form no grid, ", algorithm),
      cluster_text(cluster), job);
}

// What was found to be right where nothing was wrong.
std::string verdict(const PerfSettings& settings) {
  using control::CollectiveKind;
  const char* const order =
      settings.reproducible ? "of every order of addition" : "of the plan's order of addition";
  switch (settings.kind) {
    case CollectiveKind::all_reduce:
      return fmt::format("every element of every trainer has the bits {}", order);
    case CollectiveKind::reduce_scatter:
      return fmt::format("every element of every trainer's chunk has the bits {}", order);
    case CollectiveKind::reduce:
      return fmt::format("every element at the root has the bits {}", order);
    case CollectiveKind::all_gather:
      return "every element of every trainer has the bits of the chunk's owner";
    case CollectiveKind::broadcast:
      return "every element of every trainer has the bits of the root's";
    case CollectiveKind::barrier:
      break;
  }
  return "no trainer left a barrier before the last one had come";
}

void print_foot(const PerfCluster& cluster, const PerfSettings& settings,
                const std::vector<PerfRow>& rows, std::uint64_t wrong) {
  if (const auto average = average_busbw(rows, {cluster.placement().trainers(), {}, {}})) {
    print("# average bus bandwidth: {:.3g} GB/s\n", *average);
  }
  if (cluster.choice.plans() > 1) {
    std::vector<std::string> runs;
    for (const PerfRow& row : rows) {
      runs.push_back(
          fmt::format("{} by {}", exact_bytes(row.bytes()), plan_of(cluster, row).algorithm()));
    }
    const std::string_view name =
        settings.algorithm.empty()
            ? "the default"
            : std::string_view(settings.algorithm).substr(0, settings.algorithm.find(':'));
    write_output(fmt::format("# {} ran {}\n", name, fmt::join(runs, ", ")));
  }
  if (!settings.check) return;
  if (wrong == 0) {
    print("# {}\n", verdict(settings));
  } else if (settings.kind == control::CollectiveKind::barrier) {
    print("# {} times a trainer left a barrier TOO EARLY\n", wrong);
  } else {
    print("# {} elements are WRONG\n", wrong);
  }
}

PerfRow measure(PerfRunner& runner, std::uint64_t count, const PerfSettings& settings,
                const RunDirectory& directory, const control::Placement& placement) {
  return measured_row(
      directory, placement,
      [&] {
        return fmt::format("{} elements: {} of {} iterations", grouped(count),
                           runner.iterations_done(), settings.warmup + settings.iterations);
      },
      [&] { return runner.run(count); });
}

// Says what was asked for beside an all-reduce on all servers.
void add_facts(Report& report, const PerfCluster& cluster, const PerfSettings& settings) {
  report.fact("topology", control::topology_json(cluster.topology()));
  report.fact("rate_bps", cluster.running.rate_bps);
  if (settings.kind != control::CollectiveKind::all_reduce) {
    report.fact("collective", perf_name(settings.kind));
  }
  if (control::has_root(settings.kind)) report.fact("root", settings.root);
  const std::string unusual = cluster.unusual_algorithm();
  if (!settings.algorithm.empty() || !unusual.empty()) {
    report.fact("algorithm", unusual.empty() ? settings.algorithm : unusual);
  }
  if (settings.reproducible) report.fact("reproducible", true);
  if (settings.trainers > 1) report.fact("trainers_per_server", settings.trainers);
  if (settings.members.empty()) return;
  report.fact("members", control::addresses_json(cluster.topology().space(), settings.members));
}

// The rows, what they cost if that is counted, and where auto chooses, by which algorithm.
ReportTable& add_table(Report& report, const PerfCluster& cluster, bool counts_work) {
  std::vector<ReportColumn> columns = perf_columns();
  if (counts_work) {
    for (ReportColumn& column : work_columns()) columns.push_back(std::move(column));
  }
  if (cluster.choice.plans() > 1) columns.push_back({{}, "algorithm"});
  return report.table("results", std::move(columns));
}

std::vector<Cell> cells_of(const PerfCluster& cluster, const PerfRow& row, bool counts_work) {
  std::vector<Cell> cells = perf_cells(row, links_of(cluster, row));
  if (counts_work) {
    for (Cell& cell : work_cells(row)) cells.push_back(std::move(cell));
  }
  cells.push_back(cell::told(plan_of(cluster, row).algorithm()));
  return cells;
}

// What the trainers need beside their buffers to check them, each in a thread of its own.
double bytes_of_check(const PerfCluster& cluster, const PerfSettings& settings) {
  if (!settings.check) return 0;
  std::size_t most = 0;
  for (unsigned i = 0; i < cluster.choice.plans(); ++i) {
    most = std::max(most, Oracle::most_bytes(cluster.choice.plan(i)));
  }
  return static_cast<double>(most) * static_cast<double>(cluster.trainers.size());
}

// Refuses what would make the kernel kill processes: all buffers are in memory at once.
void require_memory(const PerfCluster& cluster, const PerfSettings& settings,
                    const std::vector<std::uint64_t>& sizes) {
  const double largest = static_cast<double>(*std::max_element(sizes.begin(), sizes.end()));
  // In a reproducible job there is a copy of what is added, in another form.
  const double copies =
      settings.reproducible && control::reduces(settings.kind)
          ? 1 + static_cast<double>(carried_bytes(settings, cluster.placement().trainers())) /
                    static_cast<double>(aggregation::element_bytes(settings.type))
          : 1;
  const double needed =
      largest * copies * settings.in_flight * static_cast<double>(cluster.trainers.size()) +
      bytes_of_check(cluster, settings);
  const auto available = available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  throw SetupError(fmt::format(
      "{} of {} of {} trainers{}{} take {}, and {} are available",
      settings.kind == control::CollectiveKind::all_reduce ? "gradients" : "buffers",
      human_bytes(largest), cluster.trainers.size(),
      settings.in_flight > 1 ? fmt::format(", {} in flight,", settings.in_flight) : std::string(),
      settings.check ? " and their check" : "", human_bytes(needed),
      human_bytes(static_cast<double>(*available))));
}

// For `plan --why`: what it compares, in a run directory of this user's own.
void keep(const RunDirectory& directory, const PerfCluster& cluster, const PerfSettings& settings,
          const std::vector<PerfRow>& rows) {
  const bool is_compared = settings.kind == control::CollectiveKind::all_reduce &&
                           settings.members.empty() && settings.in_flight == 1 &&
                           settings.trainers == 1 && !settings.reproducible;
  if (!is_compared || !directory.is_own()) return;
  Measurements measured = Measurements::read(directory, cluster.running.key);
  for (const PerfRow& row : rows) {
    measured.note(plan_of(cluster, row).algorithm(), row.bytes(),
                  figures(row, links_of(cluster, row)).seconds_median);
  }
  // The report has been printed, and is right without.
  try {
    measured.write(directory);
  } catch (const SetupError& error) {
    fmt::print(stderr, "gradcube: warning: {}; `gradcube plan --why` will not show these times\n",
               error.what());
  }
}

int run_perf(const PerfOptions& options) {
  if (measures_messages(options)) return run_perf_messages(options);
  PerfSettings settings = settings_of(options);
  const std::vector<std::uint64_t> sizes = sizes_of(options);
  // What no cluster can hold is refused before one is asked.
  for (const std::uint64_t size : sizes) elements_of(size, settings, 1);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const PerfCluster cluster = read_perf_cluster(directory, options, settings);
  require_root(settings, cluster.choice.plan(0));
  require_carrier(settings, cluster.choice.plan(0));
  std::vector<std::uint64_t> counts;
  for (const std::uint64_t size : sizes) {
    counts.push_back(elements_of(size, settings, cluster.placement().trainers()));
  }
  require_memory(cluster, settings, sizes);
  const std::string job = options.job_name("perf");
  PerfRunner runner(cluster.choice, cluster.trainers, job, settings);
  // One of the processes that measure together prints.
  const bool prints = cluster.trainers.front().rank == 0;
  const bool table = prints && !options.json;

  Report report;
  add_facts(report, cluster, settings);
  ReportTable& results = add_table(report, cluster, settings.counts_work);
  if (table) {
    write_output(title_of(cluster, settings, job) + results.head());
    flush_output();
  }
  std::vector<PerfRow> rows;
  std::uint64_t wrong = 0;
  for (const std::uint64_t count : counts) {
    rows.push_back(measure(runner, count, settings, directory, cluster.placement()));
    wrong += rows.back().wrong.value_or(0);
    add_row(results, cells_of(cluster, rows.back(), settings.counts_work), table);
  }
  if (options.json && prints) {
    const auto average = average_busbw(rows, {cluster.placement().trainers(), {}, {}});
    report.fact("average_busbw", average ? json(*average) : json(nullptr));
    report.write(true);
  } else if (table || wrong != 0) {
    print_foot(cluster, settings, rows, wrong);
  }
  flush_output();
  if (prints && wrong == 0) keep(directory, cluster, settings, rows);
  return wrong == 0 ? 0 : kExitFailure;
}

// What stands before the command that was meant would be lost.
void refuse_options_before(const CLI::App& perf, Action& action) {
  for (const CLI::Option* option : perf.get_options()) {
    if (option->count() == 0) continue;
    const std::string name = perf.get_subcommands().front()->get_name();
    action = [name, option = option->get_name()]() -> int {
      throw control::UsageError(fmt::format(
          "{} stands before \"{}\", which has options of its own; expected them behind it", option,
          name));
    };
    return;
  }
}

}  // namespace

void add_perf(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand("perf",
                                          "Measure collectives and messages on the running "
                                          "cluster, with one trainer per server or several");
  auto options = std::make_shared<PerfOptions>();
  add_perf_options(command, options.get());
  add_perf_hub(*command, action);
  command->callback([command, options, &action] {
    if (!command->get_subcommands().empty()) return refuse_options_before(*command, action);
    if (options->collective.empty()) throw CLI::RequiredError("collective");
    action = [options] { return run_perf(*options); };
  });
}

}  // namespace gradcube::cli
