// `gradcube tune chunk`: finds the length of a hub's chunks with which a round on the running
// cluster takes least (PHub, Figure 16).

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <fmt/format.h>
#include <memory>
#include <nlohmann/json.hpp>

#include "cli/cluster/interrupt.h"
#include "cli/perf/chunk_search.h"
#include "cli/perf/commands.h"
#include "cli/perf/hub_options.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/progress_line.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"

namespace gradcube::cli {
namespace {

using nlohmann::ordered_json;

struct TuneOptions {
  HubOptions hub;
  unsigned turns = 3;
};

// All lengths that are asked for, turn by turn.
void measure_all(ChunkSearch& search, HubRunner& runner, const TuneOptions& options,
                 const control::RunDirectory& directory, const PerfCluster& cluster) {
  while (!search.next().empty()) {
    for (unsigned turn = 0; turn < options.turns; ++turn) {
      for (const std::uint64_t chunk : search.next()) {
        const ProgressLine progress([&, turn, chunk] {
          return fmt::format("turn {} of {}: chunks of {} bytes", turn + 1, options.turns,
                             chunk_text(chunk));
        });
        search.note(chunk, measured(runner, {.chunk_bytes = chunk}, directory, cluster).seconds);
      }
    }
    search.advance();
  }
}

std::string report_text(const ChunkSearch& search) {
  TextTable table({{"chunk (B)"}, {"min"}, {"median"}, {"max"}, {"of the best"}});
  const auto medians = search.medians();
  const double least = medians.at(search.best());
  const auto milliseconds = [](double seconds) { return fmt::format("{:.3f} ms", seconds * 1e3); };
  for (const auto& [chunk, seconds] : search.measured()) {
    const auto [shortest, longest] = std::minmax_element(seconds.begin(), seconds.end());
    table.add_row({chunk_text(chunk), milliseconds(*shortest), milliseconds(medians.at(chunk)),
                   milliseconds(*longest), fmt::format("{:.3f}", medians.at(chunk) / least)});
  }
  const std::string verdict = search.best() == ChunkSearch::kAuto
                                  ? "# the default is as good as any: leave chunk_bytes at 0\n"
                                  : fmt::format("# the best: chunk_bytes = {}\n", search.best());
  return table.text() + verdict;
}

ordered_json report_json(const ChunkSearch& search, ordered_json report) {
  const auto length = [](std::uint64_t chunk) {
    return chunk == ChunkSearch::kAuto ? ordered_json(nullptr) : ordered_json(chunk);
  };
  report["results"] = ordered_json::array();
  for (const auto& [chunk, seconds] : search.medians()) {
    report["results"].push_back({{"chunk_bytes", length(chunk)}, {"seconds_median", seconds}});
  }
  report["best_chunk_bytes"] = length(search.best());
  return report;
}

int run_tune_chunk(TuneOptions options) {
  HubRunSettings settings = hub_settings_of(options.hub);
  const std::string job = options.hub.job = hub_job_name(options.hub, "tune");
  const control::RunDirectory directory = control::RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const PerfCluster cluster = hub_cluster(directory, options.hub, settings);
  if (cluster.trainers.size() != cluster.placement().trainers()) {
    throw control::SetupError(fmt::format(
        "{} of the job's {} servers are on this host: tune chunk needs all of them; measure single "
        "lengths on all hosts by perf hub --chunk, with the same --job",
        cluster.trainers.size() / settings.trainers, cluster.placement().ranks()));
  }
  HubRunner runner(cluster.placement(), cluster.trainers, job, settings);
  if (!options.hub.json) {
    print("# hub of {}, {}, job {}\n", hub_text(options.hub, settings), cluster_text(cluster), job);
    flush_output();
  }
  ChunkSearch search(settings.bytes());
  measure_all(search, runner, options, directory, cluster);
  write_output(options.hub.json
                   ? report_json(search, hub_json(cluster, options.hub, settings)).dump() + "\n"
                   : report_text(search));
  return 0;
}

void add_tune_chunk(CLI::App& tune, Action& action) {
  CLI::App* command = tune.add_subcommand(
      "chunk", "The length of a hub's chunks with which a round takes least on this cluster");
  auto options = std::make_shared<TuneOptions>();
  add_hub_options(command, options->hub);
  command
      ->add_option("--turns", options->turns,
                   "How often each length is measured, in turn with the others")
      ->capture_default_str()
      ->check(whole_number_in(1, 1000));
  command->footer(
      "Measures powers of two from 8 KiB on, then lengths between the best and its neighbours. "
      "\"auto\"\n"
      "is the default, by the model's length; it is preferred to what is less than 1 % better. "
      "Where\n"
      "times of one length differ by more than the lengths do, take more turns.\n"
      "Give the result to gradcube_hub_settings.chunk_bytes, or Hub(..., chunk_bytes=...).\n"
      "Examples:\n"
      "  gradcube tune chunk --network resnet50 --optimizer adamw\n"
      "  gradcube tune chunk --keys keys.json --turns 5 --json");
  command->callback(
      [options, &action] { action = [options] { return run_tune_chunk(*options); }; });
}

}  // namespace

void add_tune(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand("tune", "Find the best settings for the running cluster");
  command->require_subcommand(0, 1);  // the action below has a better message for 0
  add_tune_chunk(*command, action);
  command->callback([command, &action] {
    if (!command->get_subcommands().empty()) return;
    action = []() -> int {
      throw control::UsageError(
          "what to tune is missing; expected chunk: `gradcube tune --help` tells more");
    };
  });
}

}  // namespace gradcube::cli
