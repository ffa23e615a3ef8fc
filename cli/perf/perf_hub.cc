#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/cluster/host_load.h"
#include "cli/cluster/interrupt.h"
#include "cli/measure/harness.h"
#include "cli/measure/measure_hub.h"
#include "cli/perf/perf_cluster.h"
#include "cli/perf/perf_commands.h"
#include "cli/perf/perf_options.h"
#include "cli/perf/perf_report.h"
#include "cli/text/keys_file.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/package_file.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/hub/aggregator_plan.h"
#include "control/hub/binding.h"
#include "control/hub/chunks.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::RunDirectory;
using control::SetupError;
using control::UsageError;

// As they were written; empty where they were not.
struct HubOptions : JobOptions {
  std::string network = "resnet50";
  std::string keys;
  std::string optimizer = "sgd";
  std::string aggregator;
  std::string chunks = "auto";
  HubRunSettings run;  // what needs no more than parsing
};

// Of the models (gradcube.model.networks): a layer's parameters are one key.
constexpr std::array kNetworks = {"googlenet", "resnet50", "vgg19", "lenet5"};

std::vector<control::HubKey> keys_of_network(const std::string& name) {
  if (std::find(kNetworks.begin(), kNetworks.end(), name) == kNetworks.end()) {
    throw UsageError(fmt::format("--network: there is no network {}; expected {}, or --keys FILE",
                                 control::quoted(name), fmt::join(kNetworks, ", ")));
  }
  return read_keys_file(package_file(fmt::format("gradcube/model/networks/{}.json", name)));
}

// What a round is to the links.
constexpr auto kRound = control::CollectiveKind::all_reduce;

// The hub's plans, of which the length of the model decides.
control::PlanChoice choice_of(const PerfCluster& cluster, const HubRunSettings& settings) {
  if (settings.aggregators.empty()) return cluster.choice;
  const std::vector<control::ServerId> aggregators(settings.aggregators.begin(),
                                                   settings.aggregators.end());
  return control::hub::aggregated(cluster.topology(), cluster.placement(), aggregators,
                                  "--aggregator");
}

const control::Plan& plan_of(const control::PlanChoice& choice, const HubRunSettings& settings) {
  return choice.plan_of_hub(settings.bytes());
}

// Those that take trainers.
std::string all_but(const RunningCluster& cluster, const std::vector<std::uint64_t>& servers) {
  std::string members;
  for (const control::ServerId each :
       control::trainers_servers(cluster.topology, cluster.aggregators)) {
    if (std::ranges::find(servers, each) == servers.end())
      members += cluster.topology.space().text(each) + " ";
  }
  return members;
}

// Of all servers that are here. The model is float32 where it is stepped, and each server has the
// whole in the gradients' type, aggregators too; what waits to be added is at most another one.
void require_memory(const PerfCluster& cluster, const HubRunSettings& settings,
                    const control::PlanChoice& choice) {
  const auto trainers = static_cast<double>(cluster.trainers.size());
  const auto servers = trainers / cluster.placement().trainers_per_server();
  const auto bytes = static_cast<double>(settings.bytes());
  const auto stepped =
      static_cast<double>(control::hub::optimizer_bytes(settings.keys, settings.optimizers.of_hub));
  // A root may be here, and then it has all.
  const double owned = plan_of(choice, settings).has_root_step()
                           ? stepped
                           : stepped * servers / static_cast<double>(cluster.placement().ranks());
  const auto aggregators = static_cast<double>(settings.aggregators.size());
  double needed = bytes * trainers + bytes * (2 * servers + aggregators) + owned;
  if (settings.check) needed += stepped;
  const auto available = available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  throw SetupError(fmt::format(
      "gradients of {} trainers, and weights on {} servers, take {}, and {} are available",
      cluster.trainers.size(), servers + aggregators, human_bytes(needed),
      human_bytes(static_cast<double>(*available))));
}

void add_hub_options(CLI::App* command, HubOptions& options) {
  CLI::Option* network =
      add_text(command, "--network", options.network,
               fmt::format("Keys of {}, one for each layer", fmt::join(kNetworks, ", ")));
  add_text(command, "--keys", options.keys,
           "Keys of your own, as for `gradcube plan --keys`: a JSON file")
      ->excludes(network);
  add_text(
      command, "--optimizer", options.optimizer,
      "sgd, momentum, nesterov, adam, adamw, with settings: sgd:lr=0.1; keys may have their own: "
      "'sgd:lr=0.1;*bias:weight-decay=0'");
  add_text(command, "--aggregator", options.aggregator,
           "Servers without trainers that make all sums and steps: 2,2 or \"2,1 2,2\" (default: "
           "none; the job's servers do)");
  add_plan_options(command, options);
  add_job_options(command, options, options.run);
}

// All but what depends on the cluster. Throws UsageError.
HubRunSettings hub_settings_of(const HubOptions& options) {
  HubRunSettings settings = options.run;
  apply_job_options(options, settings);
  settings.optimizer = options.optimizer;
  settings.keys =
      options.keys.empty() ? keys_of_network(options.network) : read_keys_file(options.keys);
  settings.optimizers =
      control::parse_key_optimizers(options.optimizer, settings.keys, "--optimizer");
  return settings;
}

// The cluster for the job, and its part of the settings. Throws what read_perf_cluster() does, and
// SetupError where this host has not the memory for gradients, weights and the optimizer's state.
PerfCluster hub_cluster(const control::RunDirectory& directory, const HubOptions& options,
                        HubRunSettings& settings) {
  JobOptions asked = options;
  if (!options.aggregator.empty()) {
    const RunningCluster running = running_cluster(directory);
    const auto servers =
        control::parse_servers(running.topology, options.aggregator, "--aggregator");
    if (servers.empty()) throw UsageError("--aggregator: it names no server");
    settings.aggregators.assign(servers.begin(), servers.end());
    if (asked.members.empty()) asked.members = all_but(running, settings.aggregators);
    // As the servers tell it to the aggregators.
    for (aggregation::OptimizerSettings& its : settings.optimizers.of_keys) {
      its.learning_rate = static_cast<float>(its.learning_rate);
    }
  }
  PerfCluster cluster = read_perf_cluster(directory, asked, settings);
  require_memory(cluster, settings, choice_of(cluster, settings));
  return cluster;
}

// What a round does to the links: an all-reduce of the model by the hub's plan.
PerfLinks hub_links(const PerfCluster& cluster, const HubRunSettings& settings) {
  return cluster.links(plan_of(choice_of(cluster, settings), settings), kRound);
}

// "resnet50: 161 keys, 102 MB, sgd", and who aggregates it, if one does.
std::string hub_text(const HubOptions& options, const HubRunSettings& settings) {
  return fmt::format(
      "{}: {} keys, {}, {}{}", options.keys.empty() ? options.network : options.keys,
      settings.keys.size(), human_bytes(static_cast<double>(settings.bytes())), settings.optimizer,
      options.aggregator.empty() ? "" : fmt::format(", aggregated by {}", options.aggregator));
}

// What its JSON has beside the rows.
void add_hub_facts(Report& report, const PerfCluster& cluster, const HubOptions& options,
                   const HubRunSettings& settings) {
  report.fact("topology", control::topology_json(cluster.topology()));
  report.fact("rate_bps", cluster.running.rate_bps);
  report.fact("algorithm", plan_of(choice_of(cluster, settings), settings).algorithm());
  report.fact("trainers", cluster.placement().trainers());
  report.fact("keys", settings.keys.size());
  report.fact("bytes", settings.bytes());
  report.fact("optimizer", settings.optimizer);
  if (options.keys.empty()) report.fact("network", options.network);
  if (!options.aggregator.empty()) report.fact("aggregator", options.aggregator);
}

// "131072" or "auto", as tables show the length of chunks.
std::string chunk_text(std::uint64_t chunk_bytes) {
  return chunk_bytes == 0 ? "auto" : std::to_string(chunk_bytes);
}

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

int run_perf_hub(const HubOptions& options) {
  HubRunSettings settings = hub_settings_of(options);
  const std::vector<std::uint64_t> chunks = parse_chunks(options.chunks);
  const RunDirectory directory = RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const PerfCluster cluster = hub_cluster(directory, options, settings);
  const std::string job = options.job_name("perf-hub");
  Harness harness(cluster.trainers, cluster.placement().trainers(), job, settings);
  HubGradients gradients = gradients_of(harness, settings);
  // One of the processes that measure together prints.
  const bool prints = cluster.trainers.front().rank == 0;
  Report report;
  add_hub_facts(report, cluster, options, settings);
  PerfTable table(directory, cluster.placement(), report.table("results", hub_columns()),
                  prints && !options.json,
                  fmt::format("# hub of {}, {}, job {}\n", hub_text(options, settings),
                              cluster_text(cluster), job));
  const PerfLinks links = hub_links(cluster, settings);
  for (const std::uint64_t chunk : chunks) {
    table.add([chunk] { return fmt::format("chunks of {} bytes", chunk_text(chunk)); },
              [&] { return measure_hub(harness, settings, gradients, chunk); },
              [&](const PerfRow& row) { return hub_cells(chunk, row, links); });
  }
  if (prints && options.json) report.write(true);
  if (prints && !options.json && table.wrong() == 0) print_foot(settings, cluster);
  flush_output();
  if (table.wrong() != 0) complain(fmt::format("{} weights are WRONG", table.wrong()));
  return table.wrong() == 0 ? 0 : kExitFailure;
}

}  // namespace

std::vector<std::uint64_t> parse_chunks(const std::string& text) {
  std::vector<std::uint64_t> chunks;
  for (const std::string_view item : control::split(text, ',')) {
    if (item == "auto") {
      chunks.push_back(0);
    } else {
      const std::uint64_t bytes = control::parse_size(item, "--chunk");
      control::hub::require_chunk_bytes(bytes, "--chunk");
      chunks.push_back(bytes);
    }
  }
  return chunks;
}

void add_perf_hub(CLI::App& perf, Action& action) {
  CLI::App* command = perf.add_subcommand(
      "hub", "Rounds of a parameter hub: gradients are pushed, new weights come back");
  auto& options = options_of<HubOptions>(command, action, run_perf_hub);
  add_hub_options(command, options);
  add_text(command, "--chunk", options.chunks,
           "Bytes of its chunks, or a list: 32Ki,256Ki,auto, which is by the model's length");
  command->add_flag("--check", options.run.check,
                    "Compare every weight of every server with an oracle's");
  command->footer(
      "Nothing is computed between rounds (PHub's ZeroCompute). An exchange is a round of all\n"
      "keys.\n"
      "algbw is the model's bytes by the median, bound the time of the plan's busiest link.\n"
      "Examples:\n"
      "  gradcube perf hub --network lenet5 --optimizer momentum --check\n"
      "  gradcube perf hub --chunk 32Ki,256Ki,1Mi,auto\n"
      "  gradcube perf hub --keys keys.json --algorithm ps --json");
}

}  // namespace gradcube::cli
