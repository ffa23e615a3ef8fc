#include "cli/model/fit_measurement.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unistd.h>
#include <utility>

#include "cli/measure/harness.h"
#include "cli/measure/measure_collective.h"
#include "cli/text/progress_line.h"
#include "control/base/errors.h"
#include "control/model/line_fit.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"
#include "control/plan/neighbour_rounds.h"

namespace gradcube::cli {
namespace {

using control::model::AllReduceCost;
using control::model::TimedSize;

// Small ones show what a message costs, large ones what a byte costs.
constexpr std::uint64_t kElements[] = {16, 64, 256, 1024, 4096, 32'768, 131'072, 524'288};
constexpr unsigned kWarmup = 2;
// Small all-reduces of all servers take little time, and differ by little.
constexpr unsigned kMoreIterations = 5;
constexpr unsigned kFitTurns = 3;
// Of the default plan's latency and messages, what a plan that is measured may have.
constexpr double kMostOfDefault = 3;
constexpr std::chrono::seconds kTimeout{30};  // of each all-reduce

// Measures all-reduces of `members`: of each count the median.
std::vector<TimedSize> measure(const RunningCluster& cluster, std::string_view algorithm,
                               const std::vector<control::ServerId>& members,
                               const std::string& job, unsigned iterations,
                               std::span<const std::uint64_t> counts) {
  PerfSettings settings;
  settings.algorithm = algorithm;
  settings.members = members;
  settings.iterations = iterations;
  settings.warmup = kWarmup;
  settings.timeout = kTimeout;
  const auto placement = control::Placement::of(cluster.topology, members, "model fit");
  const std::vector<PerfTrainer> trainers = trainers_of(cluster, placement);
  if (trainers.size() != placement.ranks()) {
    throw control::SetupError(
        "model fit: some servers of the cluster are on other hosts; expected all of them on this "
        "one");
  }
  const auto choice =
      control::make_choice(settings.algorithm, cluster.topology, placement, "model fit");
  Harness harness(trainers, placement.trainers(), job, settings);
  std::vector<TimedSize> points;
  for (const std::uint64_t count : counts) {
    const PerfRow row = measure_collective(harness, choice, settings, count);
    points.push_back({static_cast<double>(row.bytes()), control::model::median(row.seconds)});
  }
  return points;
}

// Of the servers that take trainers.
std::vector<control::ServerId> first_neighbours(const RunningCluster& cluster, unsigned level) {
  for (const auto& round : control::neighbour_rounds(cluster.topology)) {
    for (const control::NeighbourLink& link : round) {
      if (control::is_aggregator(cluster.aggregators, link.first) ||
          control::is_aggregator(cluster.aggregators, link.second)) {
        continue;
      }
      if (cluster.topology.link_level(link.first, link.second, link.level) == level) {
        return {link.first, link.second};
      }
    }
  }
  throw control::SetupError(
      fmt::format("model fit: so many servers are absent, or take no trainers, that none are "
                  "neighbours at level {}; expected two that are on every level",
                  level));
}

// The plans that all servers are measured by: such as may be the fastest for small buffers, and
// differ in what they count. One with a root is as fast as that server alone, and one whose steps
// double runs none of the longer sizes.
std::vector<std::shared_ptr<const control::Plan>> plans_to_measure(
    const control::Topology& topology, const control::Placement& placement) {
  const auto parameters = control::cost_parameters(topology, {});
  std::vector<std::shared_ptr<const control::Plan>> plans;
  std::vector<std::pair<double, double>> counts;
  for (const auto& plan : control::candidate_plans(topology, placement, "model fit")) {
    if (plan->has_root_step() || plan->doubles()) continue;
    const control::PlanCost cost(*plan);
    const std::pair count{cost.latency_of_nothing(parameters), cost.messages_on_a_core(1)};
    if (std::find(counts.begin(), counts.end(), count) != counts.end()) continue;
    if (!counts.empty() && (count.first > kMostOfDefault * counts.front().first ||
                            count.second > kMostOfDefault * counts.front().second)) {
      continue;
    }
    counts.push_back(count);
    plans.push_back(plan);
  }
  return plans;
}

}  // namespace

std::vector<LevelLine> fit_levels(const RunningCluster& cluster, unsigned iterations) {
  std::vector<LevelLine> fits;
  for (unsigned level = 0; level < cluster.topology.link_levels(); ++level) {
    const ProgressLine progress([level, &cluster] {
      return fmt::format("measuring level {} ({} of {})", level, level + 1,
                         cluster.topology.link_levels());
    });
    const std::vector<control::ServerId> pair = first_neighbours(cluster, level);
    const auto placement = control::Placement::of(cluster.topology, pair, "model fit");
    const auto points =
        measure(cluster, control::default_algorithm(cluster.topology, placement), pair,
                fmt::format("fit-{}-{}", getpid(), level), iterations, kElements);
    const AllReduceCost line = control::model::fitted_line(points);
    fits.push_back({line, control::model::misfit(points, line)});
  }
  return fits;
}

// The plans take turns: what disturbs a while of the measurement disturbs all of them.
std::vector<TimedPlan> measure_plans(const RunningCluster& cluster, unsigned iterations) {
  const std::vector<control::ServerId> all =
      control::trainers_servers(cluster.topology, cluster.aggregators);
  constexpr std::uint64_t kSmallest[] = {kElements[0]};
  const auto plans = plans_to_measure(cluster.topology, placement_of(cluster, {}, "model fit"));
  std::vector<std::vector<double>> seconds(plans.size());
  const ProgressLine progress([] { return std::string("measuring all servers"); });
  for (unsigned turn = 0; turn < kFitTurns; ++turn) {
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const auto points = measure(cluster, plans[i]->algorithm(), all,
                                  fmt::format("fit-{}-all-{}-{}", getpid(), turn, i),
                                  kMoreIterations * iterations, kSmallest);
      seconds[i].push_back(points.front().seconds);
    }
  }
  std::vector<TimedPlan> timed;
  for (std::size_t i = 0; i < plans.size(); ++i) {
    timed.push_back({control::PlanCost(*plans[i]), control::model::median(seconds[i])});
  }
  return timed;
}

}  // namespace gradcube::cli
