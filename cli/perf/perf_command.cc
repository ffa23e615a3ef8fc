#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/cluster/host_load.h"
#include "cli/cluster/interrupt.h"
#include "cli/measure/harness.h"
#include "cli/measure/measure_collective.h"
#include "cli/measure/oracle.h"
#include "cli/measure/perf_collective.h"
#include "cli/perf/perf_cluster.h"
#include "cli/perf/perf_commands.h"
#include "cli/perf/perf_options.h"
#include "cli/perf/perf_report.h"
#include "cli/text/command.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/plan/base/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using nlohmann::json;

constexpr const char* kPerfFooter =
    "Each has options of its own, as `gradcube perf allreduce --help` and `gradcube perf hub "
    "--help`\n"
    "show them.\n"
    "A size is that of the whole buffer. For reduce_scatter and allgather, where each of the N\n"
    "trainers has a chunk of it, it is rounded down to N chunks of whole elements. A barrier\n"
    "has no size, type or operation, and nothing is added in an allgather or a broadcast.\n"
    "K, M and G are decimal, Ki, Mi and Gi binary. A row shows one size:\n"
    "  min, median, max   time of an iteration, from the first start to the last end\n"
    "  algbw              bytes / median time\n"
    "  busbw              algbw x a factor, as in nccl-tests: allreduce 2(N-1)/N, reduce_scatter\n"
    "                     and allgather (N-1)/N, broadcast and reduce 1\n"
    "  bound, eff         time of the plan's busiest link; bound / median. On a whole BCube with\n"
    "                     k ports per server: allreduce, broadcast, reduce 2(N-1)/(kN) x bytes at\n"
    "                     the links' rate, reduce_scatter and allgather (N-1)/(kN)\n"
    "  wrong              elements that differ from the expected bits (--check); of a barrier,\n"
    "                     trainers that left it before the last one came\n"
    "  resent             segments that were sent again\n"
    "With --verbose also, of each operation, warm-up included:\n"
    "  segments, acks     frames that all servers have sent: with a segment; with nothing else\n"
    "  sleeps, cpu        of the trainers here and of this host's daemons: how often their\n"
    "                     threads have slept, and their time on cores\n"
    "Where each server has a daemon of its own on a host of its own, run the same command on\n"
    "all of them with the same --job, by any launcher; the one of rank 0 prints, with its own\n"
    "times.\n"
    "Examples:\n"
    "  gradcube perf allreduce -b 1K -e 16M -f 2\n"
    "  gradcube perf allreduce --sizes 1K,64K,12.5M --iterations 5 --check\n"
    "  gradcube perf allreduce --sizes 97M --dtype bfloat16 --op average --json\n"
    "  gradcube perf allreduce --reproducible --algorithm ring --check\n"
    "  gradcube perf broadcast --root 4 --dtype bytes --sizes 1M\n"
    "  gradcube perf reduce_scatter --members \"0,0 0,1 0,2\"\n"
    "  gradcube perf allreduce -b 1K -e 64M -f 4 --algorithm auto --check\n"
    "  gradcube perf sendrecv --from 0 --to 8 --sizes 1K,16M --check\n"
    "  gradcube perf hub --network lenet5 --optimizer momentum --check";

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

int run_perf(const PerfOptions& options) {
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
  Harness harness(cluster.trainers, cluster.placement().trainers(), job, settings);
  // One of the processes that measure together prints.
  const bool prints = cluster.trainers.front().rank == 0;
  Report report;
  add_facts(report, cluster, settings);
  PerfTable table(directory, cluster.placement(), add_table(report, cluster, settings.counts_work),
                  prints && !options.json, title_of(cluster, settings, job));
  std::vector<PerfRow> rows;
  for (const std::uint64_t count : counts) {
    rows.push_back(table.add(
        [&] {
          return fmt::format("{} elements: {} of {} iterations", grouped(count),
                             harness.iterations_done(), settings.warmup + settings.iterations);
        },
        [&] { return measure_collective(harness, cluster.choice, settings, count); },
        [&](const PerfRow& row) { return cells_of(cluster, row, settings.counts_work); }));
  }
  if (options.json && prints) {
    const auto average = average_busbw(rows, {cluster.placement().trainers(), {}, {}});
    report.fact("average_busbw", average ? json(*average) : json(nullptr));
    report.write(true);
  } else if (prints || table.wrong() != 0) {
    print_foot(cluster, settings, rows, table.wrong());
  }
  flush_output();
  return table.wrong() == 0 ? 0 : kExitFailure;
}

}  // namespace

void add_perf(CLI::App& tool, Action& action) {
  CLI::App* perf = tool.add_subcommand("perf",
                                       "Measure collectives and messages on the running "
                                       "cluster, with one trainer per server or several");
  perf->require_subcommand(0, 1);  // for none, the message below is a better one
  for (const control::CollectiveKind kind : control::kCollectiveKinds) {
    const std::string name(control::collective_kind_name(kind));
    CLI::App* command =
        perf->add_subcommand(std::string(perf_name(kind)), fmt::format("Measure {}s", name))
            ->ignore_underscore();
    if (command->get_name() != name) command->alias(name);  // "all-reduce"
    auto& options = options_of<PerfOptions>(command, action, run_perf);
    options.settings.kind = kind;
    add_perf_options(command, options);
    command->footer(kSeePerf);
  }
  add_perf_messages(*perf, action);
  add_perf_hub(*perf, action);
  perf->footer(kPerfFooter);
  perf->callback([perf] {
    if (perf->get_subcommands().empty()) throw CLI::RequiredError("a collective, sendrecv or hub");
  });
}

}  // namespace gradcube::cli
