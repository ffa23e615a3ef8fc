#include "cli/perf/perf_hub.h"

#include <fmt/format.h>
#include <memory>

#include "cli/cluster/interrupt.h"
#include "cli/perf/hub_options.h"
#include "cli/perf/measured_row.h"
#include "cli/perf/perf_report.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/hub/chunks.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::UsageError;

struct PerfHubOptions {
  HubOptions hub;
  std::string chunks = "auto";
};

std::vector<ReportColumn> hub_columns() {
  std::vector<ReportColumn> columns = {
      {"chunk", "chunk_bytes", Align::right, "(B)", 9},
      {{}, "iterations"},
      {"min", "seconds_min", Align::right, "(ms)", 9},
      {"median", "seconds_median", Align::right, "(ms)", 9},
      {"max", "seconds_max", Align::right, "(ms)", 9},
      {"exchanges", "exchanges_per_second", Align::right, "(/s)", 10},
      {"algbw", "algbw", Align::right, "(GB/s)", 7},
      {"bound", "bound_seconds", Align::right, "(ms)", 9}};
  for (ReportColumn& column : perf_end_columns()) columns.push_back(std::move(column));
  return columns;
}

std::vector<Cell> hub_cells(std::uint64_t chunk, const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  std::vector<Cell> cells = {chunk == 0 ? Cell(chunk_text(chunk), nullptr) : cell::plain(chunk),
                             cell::told(row.seconds.size()),
                             milliseconds_cell(derived.seconds_min),
                             milliseconds_cell(derived.seconds_median),
                             milliseconds_cell(derived.seconds_max),
                             cell::plain(1 / derived.seconds_median, "{:.4g}"),
                             cell::plain(derived.algbw, "{:.3g}"),
                             cell::known(derived.bound_seconds, milliseconds_cell)};
  for (Cell& each : perf_end_cells(row, derived)) cells.push_back(std::move(each));
  return cells;
}

void print_foot(const HubRunSettings& settings, const PerfCluster& cluster) {
  if (!settings.check) return;
  const bool all = cluster.trainers.size() == cluster.placement().trainers();
  print("# every weight of every server{} has the bits of the optimizer's steps\n",
        all ? "" : " that is here");
}

int run_perf_hub(const PerfHubOptions& options) {
  HubRunSettings settings = hub_settings_of(options.hub);
  const std::vector<std::uint64_t> chunks = parse_chunks(options.chunks);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const PerfCluster cluster = hub_cluster(directory, options.hub, settings);
  const std::string job = options.hub.job_name("perf-hub");
  HubRunner runner(cluster.placement(), cluster.trainers, job, settings);
  // One of the processes that measure together prints.
  const bool prints = cluster.trainers.front().rank == 0;
  const bool table = prints && !options.hub.json;
  Report report;
  add_hub_facts(report, cluster, options.hub, settings);
  ReportTable& results = report.table("results", hub_columns());
  if (table) {
    print("# hub of {}, {}, job {}\n{}", hub_text(options.hub, settings), cluster_text(cluster),
          job, results.head());
    flush_output();
  }
  std::uint64_t wrong = 0;
  const PerfLinks links = hub_links(cluster, settings);
  for (const std::uint64_t chunk : chunks) {
    const PerfRow row = measured_row(
        directory, cluster.placement(),
        [chunk] { return fmt::format("chunks of {} bytes", chunk_text(chunk)); },
        [&] { return runner.run(chunk); });
    wrong += row.wrong.value_or(0);
    add_row(results, hub_cells(chunk, row, links), table);
  }
  if (prints && options.hub.json) report.write(true);
  if (table && wrong == 0) print_foot(settings, cluster);
  flush_output();
  if (wrong != 0) complain(fmt::format("{} weights are WRONG", wrong));
  return wrong == 0 ? 0 : kExitFailure;
}

}  // namespace

std::vector<std::uint64_t> parse_chunks(const std::string& text) {
  std::vector<std::uint64_t> chunks;
  std::string_view rest = text;
  for (;;) {
    const std::string_view item = rest.substr(0, rest.find(','));
    if (item == "auto") {
      chunks.push_back(0);
    } else {
      const std::uint64_t bytes = control::parse_size(item, "--chunk");
      control::hub::require_chunk_bytes(bytes, "--chunk");
      chunks.push_back(bytes);
    }
    if (item.size() == rest.size()) return chunks;
    rest.remove_prefix(item.size() + 1);
  }
}

void add_perf_hub(CLI::App& perf, Action& action) {
  CLI::App* command = perf.add_subcommand(
      "hub", "Rounds of a parameter hub: gradients are pushed, new weights come back");
  auto options = std::make_shared<PerfHubOptions>();
  add_hub_options(command, options->hub);
  command
      ->add_option(
          "--chunk", options->chunks,
          "Bytes of its chunks, or a list: 32Ki,256Ki,auto, which is by the model's length")
      ->capture_default_str()
      ->check(not_empty());
  command->add_flag("--check", options->hub.run.check,
                    "Compare every weight of every server with an oracle's");
  command->footer(
      "Nothing is computed between rounds (PHub's ZeroCompute). An exchange is a round of all "
      "keys.\n"
      "algbw is the model's bytes by the median, bound the time of the plan's busiest link.\n"
      "Examples:\n"
      "  gradcube perf hub --network lenet5 --optimizer momentum --check\n"
      "  gradcube perf hub --chunk 32Ki,256Ki,1Mi,auto\n"
      "  gradcube perf hub --keys keys.json --algorithm ps --json");
  command->callback([options, &action] { action = [options] { return run_perf_hub(*options); }; });
}

}  // namespace gradcube::cli
