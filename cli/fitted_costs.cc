#include "cli/fitted_costs.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>
#include <vector>

#include "cli/json_fields.h"
#include "cli/run_file.h"
#include "cli/text_table.h"
#include "control/plan/algorithms.h"
#include "control/plan/plan_cost.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {
namespace {

using control::CostParameters;
using control::MessageCosts;
using nlohmann::json;

constexpr std::string_view kFile = "fitted.json";
constexpr double kStep = 1e-7;  // seconds; what a name says of a cost
constexpr std::uint64_t kMostNanoseconds = 1'000'000'000;
// Of the configured rate, what that of a line may be. Headers have a share, and timers are coarse.
constexpr double kLeastOfRate = 0.8;
constexpr double kMostOfRate = 1.1;
// The share of segments that may be sent again: the median does not see them.
constexpr double kMostResent = 0.01;

std::int64_t rounded_nanoseconds(double seconds) {
  const double steps = std::round(std::max(0.0, seconds) / kStep);
  return static_cast<std::int64_t>(std::min(steps, static_cast<double>(kMostNanoseconds) / 100)) *
         100;
}

// What an all-reduce of nothing on all servers takes, by the plan.
double seconds_of_nothing(const control::Topology& topology, std::vector<control::LinkCost> links,
                          double overhead) {
  const CostParameters parameters{.levels = std::move(links), .overhead = overhead};
  return control::PlanCost(
             control::make_plan(control::default_algorithm(topology), topology, "model fit"))
      .time(control::CollectiveKind::all_reduce, 0, parameters)
      .seconds();
}

std::optional<MessageCosts> read_costs(const json& content, const control::Topology& topology) {
  const auto overhead = count_field(content, "overhead_ns");
  if (!overhead || *overhead > kMostNanoseconds) return std::nullopt;
  MessageCosts costs{.overhead = static_cast<std::int64_t>(*overhead), .latency = {}};
  for (const json& latency : items(content, "latency_ns")) {
    if (!latency.is_number_unsigned() || latency.get<std::uint64_t>() > kMostNanoseconds) {
      return std::nullopt;
    }
    costs.latency.push_back(latency.get<std::int64_t>());
  }
  if (costs.latency.size() != topology.levels()) return std::nullopt;
  return costs;
}

// Where the levels' latencies are too many for a name, one for all: the greatest.
std::string name_of(MessageCosts costs) {
  const std::string name = control::auto_name(costs);
  if (name.size() < shared::kAlgorithmNameBytes) return name;
  costs.latency = {*std::max_element(costs.latency.begin(), costs.latency.end())};
  return control::auto_name(costs);
}

}  // namespace

MessageCosts message_costs(std::span<const control::model::AllReduceCost> lines,
                           const control::Topology& topology, double seconds_of_all) {
  std::vector<control::LinkCost> halves;
  for (const auto& line : lines) halves.push_back({.latency = std::max(0.0, line.a) / 2});
  // With an overhead o, a latency is 2 o less than half of a.
  const std::vector<control::LinkCost> ones(topology.levels(), {.latency = 1});
  const std::vector<control::LinkCost> none(topology.levels());
  const double without = seconds_of_nothing(topology, halves, 0);
  const double per_overhead =
      seconds_of_nothing(topology, none, 1) - 2 * seconds_of_nothing(topology, ones, 0);
  double overhead = per_overhead > 0 ? (seconds_of_all - without) / per_overhead : 0;
  for (const auto& half : halves) overhead = std::clamp(overhead, 0.0, half.latency / 2);
  MessageCosts costs{.overhead = rounded_nanoseconds(overhead), .latency = {}};
  for (const auto& half : halves) {
    costs.latency.push_back(rounded_nanoseconds(half.latency - 2 * overhead));
  }
  return costs;
}

std::vector<std::string> doubts_of(std::span<const control::model::AllReduceCost> lines,
                                   const control::Topology& topology, const MessageCosts& costs,
                                   double resent) {
  std::vector<std::string> doubts;
  for (unsigned level = 0; level < topology.levels(); ++level) {
    const auto configured = static_cast<double>(topology.dimensions()[level].rate_bps);
    const double found = lines[level].b > 0 ? 8 / lines[level].b : 0;
    if (configured > 0 && (found < kLeastOfRate * configured || found > kMostOfRate * configured)) {
      doubts.push_back(fmt::format("bytes on level {} took the time of {}, and its rate is {}",
                                   level, found > 0 ? human_rate(found) : "no rate",
                                   human_rate(configured)));
    }
    if (costs.latency[level] == 0) {
      doubts.push_back(fmt::format("no latency was found on level {}", level));
    }
  }
  if (resent > kMostResent) {
    doubts.push_back(fmt::format("{:.2g} % of the segments were sent again", 100 * resent));
  }
  return doubts;
}

void keep_fitted_costs(const control::RunDirectory& directory, const std::string& cluster,
                       const MessageCosts& costs) {
  write_run_file(
      directory, kFile,
      {{"cluster", cluster}, {"overhead_ns", costs.overhead}, {"latency_ns", costs.latency}});
}

std::string with_fitted_costs(const std::string& algorithm, const control::RunDirectory& directory,
                              const std::string& cluster, const control::Topology& topology) {
  if (algorithm != control::kAuto) return algorithm;
  const json content = read_run_file(directory, kFile);
  if (text_field(content, "cluster") != cluster) return algorithm;
  const auto costs = read_costs(content, topology);
  return costs ? name_of(*costs) : algorithm;
}

}  // namespace gradcube::cli
