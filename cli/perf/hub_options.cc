#include "cli/perf/hub_options.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "cli/cluster/available_memory.h"
#include "cli/measure/hub_oracle.h"
#include "cli/text/command.h"
#include "cli/text/keys_file.h"
#include "cli/text/option_checks.h"
#include "cli/text/text_table.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/hub/aggregator_plan.h"
#include "control/hub/binding.h"
#include "control/hub/optimizer_settings.h"
#include "control/training/networks.h"

namespace gradcube::cli {
namespace {

using control::SetupError;
using control::UsageError;

// A layer's parameters are one key.
std::vector<control::hub::HubKey> keys_of_network(const std::string& name) {
  const auto known = control::training::network_names();
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw UsageError(fmt::format("--network: there is no network {}; expected {}, or --keys FILE",
                                 control::quoted(name), fmt::join(known, ", ")));
  }
  std::vector<control::hub::HubKey> keys;
  for (const auto& layer : control::training::make_network(name).layers) {
    keys.push_back({layer.name, layer.parameters, aggregation::DataType::float32});
  }
  return control::hub::ordered_keys(std::move(keys), "--network");
}

// What a round is to the links.
constexpr auto kRound = control::CollectiveKind::all_reduce;

// The hub's plans, of which the length of the model decides.
control::PlanChoice choice_of(const PerfCluster& cluster, const HubRunSettings& settings) {
  if (!settings.aggregator.has_value()) return cluster.choice;
  return control::hub::aggregated(cluster.topology(), cluster.placement(), *settings.aggregator,
                                  "--aggregator");
}

const control::Plan& plan_of(const control::PlanChoice& choice, const HubRunSettings& settings) {
  return choice.plan_of(kRound, settings.bytes());
}

// Those that take trainers.
std::string all_but(const RunningCluster& cluster, control::ServerId server) {
  std::string members;
  for (const control::ServerId each :
       control::trainers_servers(cluster.topology, cluster.aggregators)) {
    if (each != server) members += cluster.topology.space().text(each) + " ";
  }
  return members;
}

// Of all servers that are here. The model is float32 where it is stepped, and each server has the
// whole in the gradients' type; what waits to be added is at most another one.
void require_memory(const PerfCluster& cluster, const HubRunSettings& settings,
                    const control::PlanChoice& choice) {
  const auto trainers = static_cast<double>(cluster.trainers.size());
  const auto servers = trainers / cluster.placement().trainers_per_server();
  const auto bytes = static_cast<double>(settings.bytes());
  const auto stepped =
      static_cast<double>(control::hub::optimizer_bytes(settings.keys, settings.step));
  // A root may be here, and then it has all.
  const double owned = plan_of(choice, settings).has_root_step()
                           ? stepped
                           : stepped * servers / static_cast<double>(cluster.placement().ranks());
  double needed = bytes * trainers + bytes * 2 * servers + owned;
  if (settings.check) needed += stepped;
  const auto available = available_memory();
  if (!available || needed <= static_cast<double>(*available)) return;
  throw SetupError(fmt::format(
      "gradients of {} trainers, and weights on {} servers, take {}, and {} are available",
      cluster.trainers.size(), servers, human_bytes(needed),
      human_bytes(static_cast<double>(*available))));
}

}  // namespace

void add_hub_options(CLI::App* command, HubOptions& options) {
  CLI::Option* network =
      command
          ->add_option("--network", options.network,
                       fmt::format("Keys of {}, one for each layer",
                                   fmt::join(control::training::network_names(), ", ")))
          ->capture_default_str()
          ->check(not_empty());
  command
      ->add_option("--keys", options.keys,
                   "Keys of your own, as for `gradcube plan --keys`: a JSON file")
      ->check(not_empty())
      ->excludes(network);
  command
      ->add_option("--optimizer", options.optimizer,
                   "sgd, momentum, nesterov, adam, adamw, with settings: sgd:lr=0.1")
      ->capture_default_str()
      ->check(not_empty());
  command
      ->add_option("--aggregator", options.aggregator,
                   "A server without trainers that makes all sums and steps: 2,2 (default: none; "
                   "the job's servers do)")
      ->check(not_empty());
  add_job_options(command, options, options.run);
}

HubRunSettings hub_settings_of(const HubOptions& options) {
  HubRunSettings settings = options.run;
  apply_job_options(options, settings);
  settings.step = control::hub::parse_optimizer(options.optimizer, "--optimizer");
  settings.optimizer = options.optimizer;
  settings.keys =
      options.keys.empty() ? keys_of_network(options.network) : read_keys_file(options.keys);
  return settings;
}

PerfCluster hub_cluster(const control::RunDirectory& directory, const HubOptions& options,
                        HubRunSettings& settings) {
  std::string members = options.members;
  if (!options.aggregator.empty()) {
    const RunningCluster running = running_cluster(directory);
    settings.aggregator =
        control::parse_server(running.topology, options.aggregator, "--aggregator");
    if (members.empty()) members = all_but(running, *settings.aggregator);
    // As the servers tell it to the aggregator.
    settings.step.learning_rate = static_cast<float>(settings.step.learning_rate);
  }
  PerfCluster cluster =
      read_perf_cluster(directory, {members, options.algorithm, settings.trainers, options.job});
  settings.members = cluster.members;
  settings.algorithm = cluster.algorithm;
  require_memory(cluster, settings, choice_of(cluster, settings));
  return cluster;
}

PerfLinks hub_links(const PerfCluster& cluster, const HubRunSettings& settings) {
  return cluster.links(plan_of(choice_of(cluster, settings), settings), kRound);
}

std::string hub_text(const HubOptions& options, const HubRunSettings& settings) {
  return fmt::format(
      "{}: {} keys, {}, {}{}", options.keys.empty() ? options.network : options.keys,
      settings.keys.size(), human_bytes(static_cast<double>(settings.bytes())), settings.optimizer,
      options.aggregator.empty() ? ""
                                 : fmt::format(", aggregated by server {}", options.aggregator));
}

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

std::string chunk_text(std::uint64_t chunk_bytes) {
  return chunk_bytes == 0 ? "auto" : std::to_string(chunk_bytes);
}

}  // namespace gradcube::cli
