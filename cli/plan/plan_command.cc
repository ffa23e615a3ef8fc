#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/measure/perf_collective.h"
#include "cli/plan/plan_forms.h"
#include "cli/plan/planned_cluster.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/cores.h"
#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/hub/aggregator_plan.h"
#include "control/plan/algorithms.h"
#include "control/plan/assignment.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_output.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

// About 100 MB of text.
constexpr control::ServerId kMostServersShown = 4096;

struct PlanOptions {
  SettingsOptions cluster;
  std::string algorithm;
  std::string server;
  std::string lcores;
  unsigned trainers = 1;
  std::string why;
  bool json = false;
  PlanVerifyOptions verify;
  PlanKeysOptions keys;
};

std::vector<control::Lcore> lcores_of(const std::string& text) {
  control::ClusterSettings settings;
  settings.lcores = control::allowed_cores();
  if (!text.empty()) control::apply_setting(settings, "lcores", text, "--lcores");
  std::vector<control::Lcore> lcores;
  for (const unsigned id : settings.lcores) lcores.push_back({.id = id});
  return lcores;
}

// "thread 0 0.8333, thread 1 0.1667": of the buffer.
std::string shares_text(const control::Plan& plan) {
  double weights = 0;
  for (unsigned t = 0; t < plan.threads(); ++t) weights += plan.thread(t).weight;
  std::string text;
  for (unsigned t = 0; t < plan.threads(); ++t) {
    text +=
        fmt::format("{}thread {} {:.4f}", t == 0 ? "" : ", ", t, plan.thread(t).weight / weights);
  }
  return text;
}

// What the rates make of the plan: the threads' shares, and the time that no all-reduce can beat.
std::string rates_text(const control::Plan& plan) {
  const auto busiest = busiest_link(plan, control::CollectiveKind::all_reduce);
  if (!busiest) return fmt::format("shares: {}\n", shares_text(plan));
  const std::uint64_t rate = plan.topology().dimensions()[busiest->level].rate_bps;
  return fmt::format(
      "shares: {}\nbound: the links of level {} carry {:.4f} of an all-reduce's buffer at {}, so 1 "
      "MB takes {} or more\n",
      shares_text(plan), busiest->level, busiest->share, control::format_rate(rate),
      human_seconds(busiest->share * 8e6 / static_cast<double>(rate)));
}

// Which cluster it is of, where that was not named; programs see the topology.
void print_head(const PlanOptions& options, const PlannedCluster& cluster) {
  if (options.json || cluster.which.empty()) return;
  print("# on {}{}\n", cluster.topology.spec(), cluster.which);
}

void write_report(const PlanOptions& options, const PlannedCluster& cluster, Report report) {
  print_head(options, cluster);
  report.fact("running", cluster.running.has_value());
  report.write(options.json);
}

std::optional<control::Rank> rank_of(const PlannedCluster& cluster, const std::string& text) {
  if (text.empty()) {
    if (cluster.placement.ranks() <= kMostServersShown) return std::nullopt;
    throw control::UsageError(fmt::format(
        "{} has {} servers, more than the {} that are shown at once: name one by its address, "
        "with --server",
        cluster.topology.spec(), cluster.placement.ranks(), kMostServersShown));
  }
  const auto server = control::parse_server(cluster.topology, text, "--server");
  const auto rank = cluster.placement.rank(server);
  if (rank) return rank;
  throw control::UsageError(
      fmt::format("--server {}: it takes no trainers, so it has no part in the plan of a job",
                  control::quoted(text)));
}

// Of a hub, whose sums may be made at servers that take no trainers.
control::Plan hub_plan(const PlannedCluster& cluster, const std::string& algorithm) {
  constexpr std::string_view kRootedAt = "ps:";
  if (cluster.running && algorithm.starts_with(kRootedAt)) {
    const auto roots =
        control::parse_servers(cluster.topology, algorithm.substr(kRootedAt.size()), "--algorithm");
    if (std::ranges::none_of(roots,
                             [&](auto root) { return cluster.placement.rank(root).has_value(); })) {
      return control::hub::aggregated(cluster.topology, cluster.placement, roots, "--algorithm")
          .plan_of_hub(0);
    }
  }
  return control::make_choice(algorithm, cluster.topology, cluster.placement, "--algorithm")
      .plan_of_hub(0);
}

int show_plan(const PlanOptions& options) {
  const auto cluster = planned_cluster(control::RunDirectory::from_environment(), options.cluster);
  const control::Topology& topology = cluster.topology;
  const std::string algorithm =
      options.algorithm.empty()
          ? std::string(control::default_algorithm(topology, cluster.placement))
          : options.algorithm;
  if (control::auto_costs(algorithm, topology, "--algorithm")) {
    throw control::UsageError(
        fmt::format("--algorithm {}: auto is no plan, it chooses one for each size; `gradcube plan "
                    "--why SIZE` shows which",
                    control::quoted(algorithm)));
  }
  if (options.verify.wanted) {
    const auto plan = control::make_plan(algorithm, topology, cluster.placement, "--algorithm");
    write_report(options, cluster, verified(plan, options.verify));
    return 0;
  }
  if (!options.keys.file.empty()) {
    const auto lcores = lcores_of(options.lcores);
    write_report(options, cluster, keys_report(hub_plan(cluster, algorithm), lcores, options.keys));
    return 0;
  }
  const auto rank = rank_of(cluster, options.server);
  const auto placement = cluster.placement.with_trainers(options.trainers, "--trainers");
  const auto plan = control::make_plan(algorithm, topology, placement, "--algorithm");
  const auto assignment = control::Assignment::all_servers(plan, lcores_of(options.lcores));
  print_head(options, cluster);
  write_by([&](std::ostream& out) {
    if (!options.json && options.cluster.given("rate")) out << rates_text(plan);
    const auto write = options.json ? control::write_plan_json : control::write_plan_text;
    write(out, plan, assignment, rank);
  });
  return 0;
}

// --why shows no plan.
void add_why(CLI::App* command, PlanOptions& options) {
  CLI::Option* why =
      add_text(command, "--why", options.why,
               "Show what each algorithm takes for an all-reduce of this size, and which "
               "one auto runs");
  for (const char* other : {"--server", "--lcores", "--trainers", "--verify", "--keys"}) {
    why->excludes(command->get_option(other));
  }
}

int run_plan(const PlanOptions& options) {
  if (options.why.empty()) return show_plan(options);
  return run_plan_why(options.why, options.cluster, options.algorithm, options.json);
}

}  // namespace

void add_plan(CLI::App& tool, Action& action) {
  CLI::App* command = tool.add_subcommand(
      "plan",
      "Show who owns which piece and who sends what to whom in each step: of a topology, or of the "
      "running cluster");
  auto& options = options_of<PlanOptions>(command, action, run_plan);
  options.cluster.add(command, "topology")
      ->description(std::string(control::kTopologyForms) +
                    " (default: the running cluster's; bcube:3,2 where none runs)");
  options.cluster.add(command, "absent");
  add_text(
      command, "--algorithm", options.algorithm,
      fmt::format("{} (default: {}); a job may also ask for {}, which takes one of "
                  "them for each size: see --why",
                  fmt::join(control::algorithm_names(), ", "), control::kDefaults, control::kAuto));
  options.cluster.add(command, "rate")
      ->description(
          "Rate of every link, or of each level's, level0=10gbit,level1=1gbit: shows the threads' "
          "shares and the bound that follow");
  options.cluster.add(command, "oversubscription");
  add_text(command, "--server", options.server, "Show this server only, by its address: 2,1");
  add_text(command, "--lcores", options.lcores,
           "Cores that share the threads: 0,2-3 (default: all)");
  add_number(command, "--trainers", options.trainers, 1, control::kMaxLocalTrainers,
             "Trainers of the job on each server");
  add_plan_verify(*command, options.verify);
  add_plan_keys(*command, options.keys);
  add_why(command, options);
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "--why: a modelled time is that of the messages (latency) and of the bytes (transfer); the\n"
      "larger one binds, by the level whose links take the longest. measured is the median of\n"
      "the last `gradcube perf allreduce` with this algorithm and size. --algorithm\n"
      "auto:1us,40us sets what a server takes for a message, and how long it is on its way;\n"
      "`gradcube model fit` measures both.\n"
      "--keys: {\"keys\": [{\"name\": \"conv1.weight\", \"elements\": 9408, \"dtype\":\n"
      "\"float32\"}, ...]} is what a parameter hub is given; dtype is float32, float16 or\n"
      "bfloat16. Its chunks are divided among the plan's threads (of ps: the roots' ports), and\n"
      "each thread's among its cores; --lcores are those of one server.\n"
      "Examples:\n"
      "  gradcube plan --topology bcube:3,2                              all nine servers\n"
      "  gradcube plan --topology bcube:16,4 --server 2,1,0,3 --json     one of 65536\n"
      "  gradcube plan --topology bcube:16,4 --verify --seed 7           is it an all-reduce?\n"
      "  gradcube plan --keys keys.json --topology bcube:3,2 --lcores 0-3 --optimizer adamw\n"
      "  gradcube plan --topology bcube:4,2 --absent \"3,1 3,2 3,3\" --verify\n"
      "  gradcube plan --topology tree:4x4 --rate 10gbit --oversubscription 4 --algorithm ring\n"
      "  gradcube plan --why 64M                                         on the running cluster\n"
      "  gradcube plan --why 4K --topology bcube:4,2 --rate 10gbit       anywhere");
}

}  // namespace gradcube::cli
