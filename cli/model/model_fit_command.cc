#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/checks/link_check.h"
#include "cli/cluster/control_client.h"
#include "cli/cluster/interrupt.h"
#include "cli/cluster/running_cluster.h"
#include "cli/measure/work_counts.h"
#include "cli/model/fit_measurement.h"
#include "cli/model/fitted_costs.h"
#include "cli/model/python.h"
#include "cli/text/command.h"
#include "cli/text/option_checks.h"
#include "cli/text/output.h"
#include "cli/text/report.h"
#include "cli/text/units_text.h"
#include "control/base/errors.h"
#include "control/plan/neighbour_rounds.h"
#include "control/plan/plan_choice.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

struct FitOptions {
  unsigned iterations = 9;
  // With nodes nothing is measured, and all others are for the model.
  std::string nodes;
  std::string bytes = "100M";
  std::string alpha;
  std::string beta;
  std::string gamma;
  bool json = false;
};

// Messages around a link that is down would be measured in its place.
void require_sound_links(const control::RunDirectory& directory, const RunningCluster& cluster) {
  const nlohmann::json status = ask_status(directory);
  for (const auto& round : control::neighbour_rounds(cluster.topology)) {
    for (const control::NeighbourLink& link : round) {
      const std::string problem = reported_problem(status, cluster, link);
      if (problem.empty()) continue;
      const control::AddressSpace& space = cluster.topology.space();
      throw control::SetupError(fmt::format(
          "model fit: the link between {} and {} at level {} is not as configured: {}; mend it "
          "first: `gradcube check` measures all links",
          space.text(link.first), space.text(link.second), link.level, problem));
    }
  }
}

// Of the segments that were sent since `before`; 0 where the daemon does not count them.
double resent_share(const control::RunDirectory& directory,
                    const std::optional<WorkCounts>& before) {
  const auto after = work_of_daemons(directory);
  if (!before || !after || after->segments <= before->segments) return 0;
  return static_cast<double>(after->resent - before->resent) /
         static_cast<double>(after->segments - before->segments);
}

// What was measured, and what is made of it.
struct Fit {
  std::vector<LevelLine> levels;
  std::vector<TimedPlan> plans;
  control::MessageCosts costs{};
  std::vector<std::string> doubts{};
};

Fit measured_fit(const control::RunDirectory& directory, const RunningCluster& cluster,
                 unsigned iterations) {
  const auto before = work_of_daemons(directory);
  Fit fit{.levels = fit_levels(cluster, iterations), .plans = measure_plans(cluster, iterations)};
  const double resent = resent_share(directory, before);
  fit.costs = message_costs(fit.levels, cluster.servers_per_core, fit.plans);
  fit.doubts = doubts_of(fit.levels, cluster.topology, fit.costs, resent,
                         tell_costs_apart(cluster.topology, fit.plans));
  return fit;
}

Report report_of(const RunningCluster& cluster, const Fit& fit) {
  const control::MessageCosts& costs = fit.costs;
  const double overhead = static_cast<double>(costs.overhead) * 1e-9;
  Report report;
  report.line(
      fmt::format("# {}: an all-reduce of two neighbours takes a + b M", cluster.topology.spec()));
  ReportTable& table = report.table("levels", {{"level", "level"},
                                               {"a", "a_seconds"},
                                               {"b per MB", "b_seconds_per_byte"},
                                               {"rate of b", ""},
                                               {{}, "misfit"},
                                               {"configured", "rate_bps"},
                                               {"latency", "latency_seconds"}});
  for (unsigned level = 0; level < fit.levels.size(); ++level) {
    const auto& [line, misfit] = fit.levels[level];
    const std::uint64_t rate = cluster.topology.path_bps(level);
    table.add({cell::count(level), cell::seconds(line.a), Cell(human_seconds(line.b * 1e6), line.b),
               cell::shown(line.b > 0 ? human_rate(8 / line.b) : "-"), cell::told(misfit),
               rate == 0 ? cell::none() : Cell(human_rate(static_cast<double>(rate)), rate),
               cell::seconds(static_cast<double>(costs.latency[level]) * 1e-9)});
  }
  const std::string algorithm = fitted_name(costs);
  report.line(fmt::format(
      "# a core takes {} for a message; {} {}", human_seconds(overhead),
      fit.doubts.empty() ? "ask for the algorithm" : "by this doubtful fit:", algorithm));
  report.fact("overhead_seconds", overhead);
  report.fact("servers_per_core", costs.servers_per_core);
  report.fact("all_servers_seconds", fit.plans.front().seconds);
  report.fact("algorithm", algorithm);
  report.fact("doubts", fit.doubts);
  return report;
}

[[noreturn]] void become_model_of_lines(const FitOptions& options) {
  std::vector<std::string> words = {"fit", "--nodes=" + options.nodes, "--bytes=" + options.bytes};
  if (!options.alpha.empty()) words.push_back("--alpha=" + options.alpha);
  if (!options.beta.empty()) words.push_back("--beta=" + options.beta);
  if (!options.gamma.empty()) words.push_back("--gamma=" + options.gamma);
  if (options.json) words.emplace_back("--json");
  become_python(kModelsModule, words);
}

int run_fit(const FitOptions& options) {
  if (!options.nodes.empty()) become_model_of_lines(options);
  const auto directory = control::RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const RunningCluster cluster = running_cluster(directory);
  require_sound_links(directory, cluster);
  const Fit fit = measured_fit(directory, cluster, options.iterations);
  report_of(cluster, fit).write(options.json);
  if (fit.doubts.empty()) return 0;
  complain(fmt::format("the fit is doubtful: {}; `gradcube check` measures the links",
                       fmt::join(fit.doubts, "; ")));
  return kExitFailure;
}

// With --nodes nothing is measured.
void add_line_options(CLI::App& command, FitOptions& options) {
  CLI::Option* nodes =
      add_text(&command, "--nodes", options.nodes,
               "Measure nothing: an all-reduce on so many nodes as a line a + bM, by "
               "MG-WFBP's Table II: 64, 4,8,64, or 4..64 for each that is twice the one "
               "before");
  nodes->excludes(command.get_option("--iterations"));
  add_text(&command, "--bytes", options.bytes, "Of --nodes: M, 12.5M or 64Ki")->needs(nodes);
  add_text(&command, "--alpha", options.alpha,
           "Time of a message between two nodes whatever its size [45.26us]");
  add_text(&command, "--beta", options.beta,
           "Time of each byte between two nodes [0.8ns, which is 10 Gbit/s]");
  add_text(&command, "--gamma", options.gamma, "Time to add one byte to another [0.1143ns]");
  for (const char* name : {"--alpha", "--beta", "--gamma"}) {
    command.get_option(name)->needs(nodes);
  }
}

}  // namespace

void add_model(CLI::App& tool, Action& action) {
  CLI::App* model = tool.add_subcommand(
      "model",
      "Compute what the papers' cost models say of a topology, or fit them to the running cluster");
  CLI::App* command = model->add_subcommand(
      "fit", "What messages and bytes cost: on the running cluster, or by MG-WFBP's Table II");
  auto& options = options_of<FitOptions>(command, action, run_fit);
  add_number(command, "-n,--iterations", options.iterations, 1, 10'000,
             "Measured per size; the median counts");
  add_line_options(*command, options);
  command->add_flag("--json", options.json, "Print one JSON object");
  command->footer(
      "For each level two neighbours do all-reduces of 64 B to 2 MB. Their medians are fitted by\n"
      "a + b M, where a is two messages one after the other. All-reduces of 64 B on all servers,\n"
      "by several plans, tell what a core takes for a message from what the way takes; how many\n"
      "servers share a core is known. Other jobs disturb it.\n"
      "A result is doubtful, and the exit code 1, where bytes took another time than the rate "
      "says\n"
      "or none, with no latency, times that lie on no line, segments that were sent again, "
      "messages\n"
      "that cost nothing on a core that servers share.\n"
      "Trainers, `perf` and `plan --why` ask for the costs by the name that is printed:\n"
      "--algorithm auto:500ns,29us,31us/8.\n"
      "With --nodes trees, recursive doubling, and halving and doubling have rows for powers of\n"
      "two alone.\n"
      "Examples:\n"
      "  gradcube model fit\n"
      "  gradcube model fit -n 25 --json\n"
      "  gradcube model fit --nodes 2..1024 --bytes 4K --alpha 5us --beta 0.2ns --gamma 0ns");
}

}  // namespace gradcube::cli
