#include "cli/model/fitted_costs.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>

#include "cli/text/units_text.h"
#include "control/model/weights_fit.h"
#include "trainer/shared_layout.h"

namespace gradcube::cli {
namespace {

using control::CostParameters;
using control::MessageCosts;

constexpr double kStep = 1e-7;  // seconds; what a name says of a cost
constexpr std::uint64_t kMostNanoseconds = 1'000'000'000;
// Of the configured rate, what that of a line may be. Headers have a share, and timers are coarse.
constexpr double kLeastOfRate = 0.8;
constexpr double kMostOfRate = 1.1;
// The share of a time that it may lie off the line.
constexpr double kMostMisfit = 0.5;
// The share of segments that may be sent again: the median does not see them.
constexpr double kMostResent = 0.01;
// What plans must differ by, in shares of what the first one counts, to tell two costs apart.
constexpr double kLeastArea = 1e-3;

std::int64_t rounded_nanoseconds(double seconds) {
  const double steps = std::round(std::max(0.0, seconds) / kStep);
  return static_cast<std::int64_t>(std::min(steps, static_cast<double>(kMostNanoseconds) / 100)) *
         100;
}

}  // namespace

std::string fitted_name(MessageCosts costs) {
  const std::string name = control::auto_name(costs);
  if (name.size() < shared::kAlgorithmNameBytes) return name;
  costs.latency = {*std::max_element(costs.latency.begin(), costs.latency.end())};
  return control::auto_name(costs);
}

MessageCosts message_costs(std::span<const LevelLine> levels, unsigned servers_per_core,
                           std::span<const TimedPlan> plans) {
  CostParameters halves;
  for (const LevelLine& level : levels) {
    halves.levels.push_back({.latency = std::max(0.0, level.line.a) / 2});
  }
  std::vector<control::model::WeighedRow> rows;
  for (const auto& [cost, seconds] : plans) {
    rows.push_back(
        {{cost.latency_of_nothing(halves), cost.messages_on_a_core(servers_per_core), 1}, seconds});
  }
  const auto [of_half, overhead, common] = control::model::fitted_weights(rows);
  MessageCosts costs{.overhead = rounded_nanoseconds(overhead),
                     .latency = {},
                     .servers_per_core = servers_per_core};
  for (const auto& half : halves.levels) {
    costs.latency.push_back(rounded_nanoseconds(half.latency * of_half));
  }
  return costs;
}

bool tell_costs_apart(const control::Topology& topology, std::span<const TimedPlan> plans) {
  const CostParameters parameters = control::cost_parameters(topology, {});
  const auto from_first = [&](const TimedPlan& plan, auto count) {
    const double first = count(plans.front().cost);
    return count(plan.cost) / first - 1;
  };
  const auto way = [&](const control::PlanCost& cost) {
    return cost.latency_of_nothing(parameters);
  };
  const auto core = [](const control::PlanCost& cost) { return cost.messages_on_a_core(1); };
  for (const TimedPlan& a : plans) {
    for (const TimedPlan& b : plans) {
      const double area =
          from_first(a, way) * from_first(b, core) - from_first(a, core) * from_first(b, way);
      if (area > kLeastArea) return true;
    }
  }
  return false;
}

std::vector<std::string> doubts_of(std::span<const LevelLine> levels,
                                   const control::Topology& topology, const MessageCosts& costs,
                                   double resent, bool plans_show_overhead) {
  std::vector<std::string> doubts;
  for (unsigned level = 0; level < topology.link_levels(); ++level) {
    const auto& [line, misfit] = levels[level];
    const auto configured = static_cast<double>(topology.path_bps(level));
    const double found = line.b > 0 ? 8 / line.b : 0;
    if (found == 0) {
      doubts.push_back(fmt::format("bytes on level {} took no time", level));
    } else if (configured > 0 &&
               (found < kLeastOfRate * configured || found > kMostOfRate * configured)) {
      doubts.push_back(fmt::format("bytes on level {} took the time of {}, and its rate is {}",
                                   level, human_rate(found), human_rate(configured)));
    }
    if (costs.latency[level] == 0) {
      doubts.push_back(fmt::format("no latency was found on level {}", level));
    }
    if (misfit > kMostMisfit) {
      doubts.push_back(fmt::format("half of the times on level {} lie {:.0f} % or more off a line",
                                   level, 100 * misfit));
    }
  }
  if (plans_show_overhead && costs.servers_per_core > 1 && costs.overhead == 0) {
    doubts.push_back(fmt::format("a core that {} servers share took no time for a message",
                                 costs.servers_per_core));
  }
  if (resent > kMostResent) {
    doubts.push_back(fmt::format("{:.2g} % of the segments were sent again", 100 * resent));
  }
  return doubts;
}

}  // namespace gradcube::cli
