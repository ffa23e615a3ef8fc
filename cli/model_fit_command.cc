#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/control_client.h"
#include "cli/fitted_costs.h"
#include "cli/interrupt.h"
#include "cli/json_fields.h"
#include "cli/link_check.h"
#include "cli/model_options.h"
#include "cli/option_checks.h"
#include "cli/output.h"
#include "cli/perf_runner.h"
#include "cli/running_cluster.h"
#include "cli/text_table.h"
#include "control/base/errors.h"
#include "control/base/units.h"
#include "control/model/line_fit.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/neighbour_rounds.h"
#include "control/plan/plan_choice.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {
namespace {

using control::model::AllReduceCost;
using control::model::TimedSize;

// Small ones show what a message costs, large ones what a byte costs.
constexpr std::uint64_t kElements[] = {16, 64, 256, 1024, 4096, 32'768, 131'072, 524'288};
constexpr unsigned kWarmup = 2;
constexpr std::chrono::seconds kTimeout{30};  // of each all-reduce

struct FitOptions {
  unsigned iterations = 9;
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

struct LevelFit {
  AllReduceCost line;
  std::uint64_t rate_bps = 0;  // configured; 0: none
};

// Measures all-reduces of `members` by the default algorithm: of each count the median.
std::vector<TimedSize> measure(const RunningCluster& cluster,
                               const std::vector<control::ServerId>& members,
                               const std::string& job, unsigned iterations,
                               std::span<const std::uint64_t> counts) {
  PerfSettings settings;
  settings.algorithm = control::default_algorithm(cluster.topology);
  settings.members = members;
  settings.iterations = iterations;
  settings.warmup = kWarmup;
  settings.timeout = kTimeout;
  const auto placement = control::Placement::grid(cluster.topology, members, "model fit");
  const std::vector<PerfTrainer> trainers = trainers_of(cluster, placement);
  if (trainers.size() != placement.ranks()) {
    throw control::SetupError(
        "model fit: some servers of the cluster are on other hosts; expected all of them on this "
        "one");
  }
  const auto choice =
      control::make_choice(settings.algorithm, cluster.topology, placement, "model fit");
  PerfRunner runner(choice, trainers, job, settings);
  std::vector<TimedSize> points;
  for (const std::uint64_t count : counts) {
    const PerfRow row = runner.run(count);
    points.push_back({static_cast<double>(row.bytes()), control::model::median(row.seconds)});
  }
  return points;
}

std::vector<LevelFit> fit_levels(const RunningCluster& cluster, unsigned iterations) {
  std::vector<LevelFit> fits;
  for (unsigned level = 0; level < cluster.topology.levels(); ++level) {
    const std::vector<control::ServerId> pair = {0,
                                                 cluster.topology.space().with_digit(0, level, 1)};
    const auto points =
        measure(cluster, pair, fmt::format("fit-{}-{}", getpid(), level), iterations, kElements);
    fits.push_back(
        {control::model::fitted_line(points), cluster.topology.dimensions()[level].rate_bps});
  }
  return fits;
}

double measure_all(const RunningCluster& cluster, unsigned iterations) {
  std::vector<control::ServerId> all(cluster.topology.servers());
  for (control::ServerId server = 0; server < all.size(); ++server) all[server] = server;
  constexpr std::uint64_t kSmallest[] = {kElements[0]};
  return measure(cluster, all, fmt::format("fit-{}", getpid()), iterations, kSmallest)
      .front()
      .seconds;
}

// Segments, by the daemon's counters.
struct SentSegments {
  double first = 0;  // for the first time
  double again = 0;
};

SentSegments sent_so_far(const control::RunDirectory& directory) {
  const nlohmann::json status = ask_status(directory);
  return {number_field(status, "counters/segments_sent").value_or(0),
          number_field(status, "counters/resent").value_or(0)};
}

// Of what was sent since `before`.
double resent_share(const SentSegments& before, const SentSegments& after) {
  return (after.again - before.again) / std::max(1.0, after.first - before.first);
}

std::string table_of(const std::vector<LevelFit>& fits, const control::MessageCosts& costs) {
  TextTable table({{"level"}, {"a"}, {"b per MB"}, {"rate of b"}, {"configured"}, {"latency"}});
  for (std::size_t level = 0; level < fits.size(); ++level) {
    const auto& [line, rate] = fits[level];
    table.add_row({fmt::format("{}", level), human_seconds(line.a), human_seconds(line.b * 1e6),
                   line.b > 0 ? human_rate(8 / line.b) : "-",
                   rate == 0 ? "-" : human_rate(static_cast<double>(rate)),
                   human_seconds(static_cast<double>(costs.latency[level]) * 1e-9)});
  }
  return table.text();
}

nlohmann::ordered_json json_of(const std::vector<LevelFit>& fits,
                               const control::MessageCosts& costs, double seconds_of_all,
                               const std::string& algorithm) {
  auto levels = nlohmann::ordered_json::array();
  for (std::size_t level = 0; level < fits.size(); ++level) {
    const auto& [line, rate] = fits[level];
    levels.push_back({{"level", level},
                      {"a_seconds", line.a},
                      {"b_seconds_per_byte", line.b},
                      {"rate_bps", rate == 0 ? nlohmann::json(nullptr) : nlohmann::json(rate)},
                      {"latency_seconds", static_cast<double>(costs.latency[level]) * 1e-9}});
  }
  return {{"levels", levels},
          {"overhead_seconds", static_cast<double>(costs.overhead) * 1e-9},
          {"all_servers_seconds", seconds_of_all},
          {"algorithm", algorithm}};
}

int run_fit(const FitOptions& options) {
  const auto directory = control::RunDirectory::from_environment();
  const InterruptGuard interrupt;
  const RunningCluster cluster = running_cluster(directory);
  require_sound_links(directory, cluster);
  const SentSegments before = sent_so_far(directory);
  const std::vector<LevelFit> fits = fit_levels(cluster, options.iterations);
  const double seconds_of_all = measure_all(cluster, options.iterations);
  const double resent = resent_share(before, sent_so_far(directory));
  std::vector<AllReduceCost> lines;
  for (const LevelFit& fit : fits) lines.push_back(fit.line);
  const control::MessageCosts costs = message_costs(lines, cluster.topology, seconds_of_all);
  keep_fitted_costs(directory, cluster.key, costs);
  const auto doubts = doubts_of(lines, cluster.topology, costs, resent);
  if (!doubts.empty()) {
    fmt::print(stderr,
               "gradcube: warning: the fit is doubtful: {}; it was kept all the same; `gradcube "
               "check` measures the links\n",
               fmt::join(doubts, "; "));
  }
  const std::string algorithm =
      with_fitted_costs(std::string(control::kAuto), directory, cluster.key, cluster.topology);
  if (options.json) {
    print("{}\n", json_of(fits, costs, seconds_of_all, algorithm).dump());
    return 0;
  }
  print("# {}: an all-reduce of two neighbours takes a + b M\n", cluster.topology.spec());
  write_output(table_of(fits, costs));
  print("# a server takes {} for a message; `perf` and `plan --why` now take auto for {}\n",
        human_seconds(static_cast<double>(costs.overhead) * 1e-9), algorithm);
  return 0;
}

}  // namespace

void add_model_fit(CLI::App& model, Action& action) {
  CLI::App* command = model.add_subcommand(
      "fit", "Measure the running cluster: what a message and a byte cost on each level");
  auto options = std::make_shared<FitOptions>();
  command
      ->add_option("-n,--iterations", options->iterations, "Measured per size; the median counts")
      ->capture_default_str()
      ->check(whole_number_in(1, 10'000));
  command->add_flag("--json", options->json, "Print one JSON object");
  command->footer(
      "For each level two neighbours do all-reduces of 64 B to 2 MB. Their medians are fitted by\n"
      "a + b M, where a is two messages one after the other. An all-reduce of 64 B on all servers\n"
      "tells what a server takes for a message from what the way takes. Other jobs disturb it.\n"
      "What is doubtful in the result is said on standard error.\n"
      "The result is kept in the run directory for this cluster: `gradcube plan --why` and\n"
      "`gradcube perf --algorithm auto` use it. Trainers ask for it by the name that is printed.\n"
      "Examples:\n"
      "  gradcube model fit\n"
      "  gradcube model fit -n 25 --json");
  command->callback([options, &action] { action = [options] { return run_fit(*options); }; });
}

}  // namespace gradcube::cli
