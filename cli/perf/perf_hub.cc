#include "cli/perf/perf_hub.h"

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>

#include "cli/cluster/control_client.h"
#include "cli/cluster/interrupt.h"
#include "cli/measure/perf_report.h"
#include "cli/perf/hub_options.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/hub/chunks.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::UsageError;
using nlohmann::ordered_json;

struct PerfHubOptions {
  HubOptions hub;
  std::string chunks = "auto";
};

// A round moves what an all-reduce of the model moves.
PerfRow row_of(const HubRunSettings& settings, HubTimes times) {
  PerfRow row;
  row.count = settings.bytes();
  row.type = aggregation::DataType::bytes;
  row.seconds = std::move(times.seconds);
  row.wrong = times.wrong;
  return row;
}

PerfRow measure(HubRunner& runner, std::uint64_t chunk, const RunDirectory& directory,
                const PerfCluster& cluster, const HubRunSettings& settings) {
  const ProgressLine progress(
      [chunk] { return fmt::format("chunks of {} bytes", chunk_text(chunk)); });
  const auto before = resent_so_far(directory);
  PerfRow row = row_of(settings, measured(runner, chunk, directory, cluster));
  const auto after = resent_so_far(directory);
  if (before && after && *after >= *before) row.resent = *after - *before;
  return row;
}

constexpr const char* kHubRowFormat =
    "{:>9} {:>10} {:>10} {:>10} {:>11} {:>8} {:>10} {:>6} {:>6} {:>7}\n";

std::string hub_table_head() {
  return fmt::format(fmt::runtime(kHubRowFormat), "chunk", "min", "median", "max", "exchanges",
                     "algbw", "bound", "eff", "wrong", "resent") +
         fmt::format(fmt::runtime(kHubRowFormat), "(B)", "(ms)", "(ms)", "(ms)", "(/s)", "(GB/s)",
                     "(ms)", "", "", "");
}

std::string hub_table_row(std::uint64_t chunk, const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f}", seconds * 1e3); };
  return fmt::format(
      fmt::runtime(kHubRowFormat), chunk_text(chunk), milliseconds(derived.seconds_min),
      milliseconds(derived.seconds_median), milliseconds(derived.seconds_max),
      fmt::format("{:.4g}", 1 / derived.seconds_median), fmt::format("{:.3g}", derived.algbw),
      derived.bound_seconds ? milliseconds(*derived.bound_seconds) : "-",
      derived.efficiency ? fmt::format("{:.3f}", *derived.efficiency) : "-",
      row.wrong ? std::to_string(*row.wrong) : "-", row.resent ? std::to_string(*row.resent) : "-");
}

ordered_json hub_row_json(std::uint64_t chunk, const PerfRow& row, const PerfLinks& links) {
  const PerfFigures derived = figures(row, links);
  const auto or_null = [](const auto& value) {
    return value ? ordered_json(*value) : ordered_json(nullptr);
  };
  return {{"chunk_bytes", chunk == 0 ? ordered_json(nullptr) : ordered_json(chunk)},
          {"iterations", row.seconds.size()},
          {"seconds_min", derived.seconds_min},
          {"seconds_median", derived.seconds_median},
          {"seconds_max", derived.seconds_max},
          {"exchanges_per_second", 1 / derived.seconds_median},
          {"algbw", derived.algbw},
          {"bound_seconds", or_null(derived.bound_seconds)},
          {"efficiency", or_null(derived.efficiency)},
          {"wrong", or_null(row.wrong)},
          {"resent", or_null(row.resent)}};
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
  const std::string job = hub_job_name(options.hub, "perf-hub");
  HubRunner runner(cluster.placement(), cluster.trainers, job, settings);
  // One of the processes that measure together prints.
  const bool prints = cluster.trainers.front().rank == 0;
  const bool table = prints && !options.hub.json;
  ordered_json report = hub_json(cluster, options.hub, settings);
  if (table) {
    print("# hub of {}, {}, job {}\n", hub_text(options.hub, settings), cluster_text(cluster), job);
    write_output(hub_table_head());
    flush_output();
  }
  std::uint64_t wrong = 0;
  report["results"] = ordered_json::array();
  const PerfLinks links = hub_links(cluster, settings);
  for (const std::uint64_t chunk : chunks) {
    const PerfRow row = measure(runner, chunk, directory, cluster, settings);
    wrong += row.wrong.value_or(0);
    report["results"].push_back(hub_row_json(chunk, row, links));
    if (!table) continue;
    write_output(hub_table_row(chunk, row, links));
    flush_output();
  }
  if (prints && options.hub.json) write_output(report.dump() + "\n");
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
