#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <string>
#include <vector>

#include "cli/model/merge_profile.h"
#include "cli/model/model_commands.h"
#include "cli/model/node_counts.h"
#include "cli/model/policy_option.h"
#include "cli/model/training_costs.h"
#include "cli/text/closest.h"
#include "cli/text/option_checks.h"
#include "cli/text/report.h"
#include "cli/text/text_file.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/training/backward_times.h"
#include "control/training/training_model.h"

namespace gradcube::cli {
namespace {

using control::UsageError;
using control::merge::Policy;
using control::model::NodeCosts;
using control::training::Network;
using control::training::PolicyTime;

constexpr std::string_view kAllTrainings = "all";

struct TrainingOptions {
  std::vector<std::string> networks = {"googlenet", "resnet50"};  // of the paper's Fig. 9
  std::string nodes = "4..64";
  std::string policy = "all";
  TrainingCostOptions costs;
  std::string compute;
  std::string profile;
  bool json = false;
};

std::vector<std::string> known_trainings() {
  const auto known = control::training::network_names();
  std::vector<std::string> names = {std::string(kAllTrainings)};
  names.insert(names.end(), known.begin(), known.end());
  return names;
}

// Those that are asked for, in their order.
std::vector<Network> networks_of(const std::vector<std::string>& asked) {
  std::vector<Network> networks;
  for (const std::string& name : asked) {
    require_known("--network", "network", name, known_trainings());
    for (const std::string_view each : control::training::network_names()) {
      if (name == kAllTrainings || name == each) {
        networks.push_back(control::training::make_network(each));
      }
    }
  }
  return networks;
}

double computing_seconds_of(const Network& network, const std::string& compute) {
  if (compute.empty()) return control::training::gpu_seconds(network.name);
  const auto nanoseconds = control::parse_duration(compute, "--compute");
  if (nanoseconds == 0) {
    throw UsageError("--compute \"0\": an iteration computes something; expected 1ns or more");
  }
  return static_cast<double>(nanoseconds) * 1e-9;
}

void add_rows(ReportTable& table, const Network& network, const std::vector<std::uint64_t>& nodes,
              const std::vector<Policy>& policies, const NodeCosts& costs, double computing) {
  for (const std::uint64_t N : nodes) {
    const auto iteration =
        control::training::iteration_of(network, computing, control::model::ring_cost(N, costs));
    for (const PolicyTime& time : control::training::policy_times(iteration)) {
      if (std::find(policies.begin(), policies.end(), time.policy) == policies.end()) continue;
      table.add({network.name, cell::count(N), control::merge::name_of(time.policy),
                 cell::shown(grouped(time.messages)), cell::seconds(time.seconds),
                 cell::shown(fmt::format("{:.3f}", computing / time.seconds)),
                 cell::plain(time.speedup_over_wfbp, "{:.2f}"),
                 cell::plain(time.speedup_over_synceasgd, "{:.2f}")});
    }
  }
}

std::string network_text(const Network& network, const TrainingOptions& options) {
  const auto times = control::training::backward_times(network.name);
  const double computing = computing_seconds_of(network, options.compute);
  return fmt::format(
      "# {}: {} layers, {}, batches of {}; both passes take {} {}, {:.3g} times a CPU's",
      network.name, network.layers.size(),
      human_bytes(4 * static_cast<double>(network.parameters())), times.batch,
      human_seconds(computing), options.compute.empty() ? "on the paper's GPU" : "as asked for",
      computing / times.seconds());
}

void write_profile(const std::string& path, const std::vector<Network>& networks,
                   const std::vector<std::uint64_t>& nodes, const NodeCosts& costs,
                   double computing_seconds) {
  if (networks.size() != 1 || nodes.size() != 1) {
    throw UsageError(
        "--write-profile: a profile is of one network on one number of nodes; expected it with "
        "such as --network resnet50 --nodes 64");
  }
  const Network& network = networks.front();
  std::vector<std::string> names;
  for (const auto& layer : network.layers) names.push_back(layer.name);
  const auto iteration = control::training::iteration_of(
      network, computing_seconds, control::model::ring_cost(nodes.front(), costs));
  write_text_file("--write-profile", path, merge_profile_json(iteration, names).dump() + "\n");
}

int run_training(const TrainingOptions& options) {
  const std::vector<Network> networks = networks_of(options.networks);
  const std::vector<std::uint64_t> nodes = parse_node_counts(options.nodes, "--nodes");
  const std::vector<Policy> policies = policies_of(options.policy);
  const NodeCosts costs = training_costs(options.costs);
  Report report;
  for (const Network& network : networks) report.line(network_text(network, options));
  report.line(fmt::format(
      "# all-reduces are rings: {} for each of 2(N-1) messages, {:.4g} ns for each byte sent and "
      "{:.4g} ns for each added",
      human_seconds(costs.alpha), costs.beta * 1e9, costs.gamma * 1e9));
  ReportTable& table = report.table("rows", {{"network", "network", Align::left},
                                             {"nodes", "nodes"},
                                             {"policy", "policy", Align::left},
                                             {"messages", ""},
                                             {"iteration", "iteration_seconds"},
                                             {"efficiency", ""},
                                             {"over wfbp", "speedup_over_wfbp"},
                                             {"over synceasgd", "speedup_over_synceasgd"}});
  for (const Network& network : networks) {
    add_rows(table, network, nodes, policies, costs,
             computing_seconds_of(network, options.compute));
  }
  if (!options.profile.empty()) {
    write_profile(options.profile, networks, nodes, costs,
                  computing_seconds_of(networks.front(), options.compute));
  }
  report.write(options.json);
  return 0;
}

}  // namespace

void add_model_training(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "training", "What an iteration of training takes on some nodes, by when gradients travel");
  auto options = std::make_shared<TrainingOptions>();
  command
      ->add_option("--network", options->networks,
                   fmt::format("{}; may be repeated", fmt::join(known_trainings(), ", ")))
      ->allow_extra_args(false)
      ->capture_default_str();
  add_text(command, "--nodes", options->nodes,
           "Numbers of nodes: 64, 4,8,64, or 4..64 for each that is twice the one before");
  add_policy_option(command, options->policy);
  add_training_cost_options(command, options->costs);
  add_text(command, "--compute", options->compute,
           "Time of the forward and backward pass on one node [that of the paper's GPU]");
  add_text(command, "--write-profile", options->profile,
           "Write the one network on the one number of nodes into this file, for `gradcube "
           "model merge --profile`");
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "This is the simulation of MG-WFBP's Fig. 9. Each layer's time was measured on a CPU, and\n"
      "all times of a network are scaled by one factor to a GPU's. docs/mg-wfbp.md compares the\n"
      "result with the paper.\n"
      "Examples:\n"
      "  gradcube model training\n"
      "  gradcube model training --network resnet50 --nodes 64 --policy mgwfbp --json\n"
      "  gradcube model training --network vgg19 --nodes 9 --alpha 5us --beta 0.2ns --compute "
      "300ms\n"
      "  gradcube model training --network resnet50 --nodes 64 --write-profile resnet50.json");
  command->callback([options, &action] { action = [options] { return run_training(*options); }; });
}

}  // namespace gradcube::cli
