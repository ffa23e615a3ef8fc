#include "control/plan/auto_plans.h"

#include <fmt/format.h>
#include <utility>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/base/units.h"
#include "control/plan/algorithms.h"

namespace gradcube::control {
namespace {

// Of a message on a link: preamble, gap, FCS, and the headers of a 1-hop segment.
constexpr double kFrameBytes = 120;
// Of a segment in a jumbo frame. With shorter frames, more of them flow.
constexpr double kSegmentBytes = 8192;
// That a link with a rate carries unasked, in one segment (protocol/send_window.h).
constexpr double kUnaskedBytes = 512;

std::string count_text(std::size_t costs) {
  return costs == 0 ? "no costs" : counted(costs, "cost");
}

double seconds(std::int64_t nanoseconds) { return static_cast<double>(nanoseconds) * 1e-9; }

}  // namespace

std::optional<MessageCosts> auto_costs(std::string_view algorithm, const Topology& topology,
                                       std::string_view where) {
  const std::size_t colon = algorithm.find(':');
  if (algorithm.substr(0, colon) != kAuto) return std::nullopt;
  MessageCosts costs;
  if (colon == std::string_view::npos) return costs;
  const std::string what = fmt::format("{} {}", where, quoted(algorithm));
  std::string_view parameters = algorithm.substr(colon + 1);
  if (const std::size_t slash = parameters.rfind('/'); slash != std::string_view::npos) {
    costs.servers_per_core = static_cast<unsigned>(parse_integer(
        parameters.substr(slash + 1), what + ": servers on a core:", 1, bcube::kMaxServers));
    parameters = parameters.substr(0, slash);
  }
  const auto items = split(parameters, ',');
  if (items.size() != 2 && items.size() != 1 + topology.link_levels()) {
    throw UsageError(fmt::format(
        "{}: it lists {}; expected what a core takes for a message, then the latency of all "
        "levels or of each of the {}, and where servers share cores how many: auto:1us,40us/8",
        what, count_text(parameters.empty() ? 0 : items.size()), topology.link_levels()));
  }
  costs.overhead = parse_duration(items[0], what);
  costs.latency.clear();
  for (std::size_t i = 1; i < items.size(); ++i) {
    costs.latency.push_back(parse_duration(items[i], what));
  }
  return costs;
}

std::string auto_name(const MessageCosts& costs) {
  std::string name = fmt::format("{}:{}", kAuto, format_duration(costs.overhead));
  for (const std::int64_t latency : costs.latency)
    name += fmt::format(",{}", format_duration(latency));
  if (costs.servers_per_core > 1) name += fmt::format("/{}", costs.servers_per_core);
  return name;
}

std::string completed_auto(const std::string& algorithm, unsigned servers_per_core) {
  if (algorithm != kAuto || servers_per_core <= 1) return algorithm;
  MessageCosts costs;
  costs.servers_per_core = servers_per_core;
  return auto_name(costs);
}

CostParameters cost_parameters(const Topology& topology, const MessageCosts& costs) {
  CostParameters parameters{.levels = {},
                            .overhead = seconds(costs.overhead),
                            .servers_per_core = static_cast<double>(costs.servers_per_core),
                            .frame_bytes = kFrameBytes,
                            .segment_bytes = kSegmentBytes};
  for (unsigned level = 0; level < topology.link_levels(); ++level) {
    const std::uint64_t rate = topology.dimensions()[level].rate_bps;
    // Uplinks that are not limited bind nobody.
    const std::uint64_t assumed = kAssumedRate * topology.sharers(level);
    const std::int64_t latency =
        costs.latency.size() == 1 ? costs.latency.front() : costs.latency[level];
    parameters.levels.push_back(
        {.latency = seconds(latency),
         .seconds_per_byte = 8 / static_cast<double>(rate == 0 ? assumed : rate)});
    if (rate != 0) parameters.unasked_bytes = kUnaskedBytes;
  }
  return parameters;
}

std::vector<std::shared_ptr<const Plan>> candidate_plans(const Topology& topology,
                                                         const Placement& placement,
                                                         std::string_view where) {
  const std::string_view first = default_algorithm(topology, placement);
  std::vector<std::shared_ptr<const Plan>> plans = {
      std::make_shared<Plan>(make_plan(first, topology, placement, where))};
  for (const std::string& name : algorithm_names()) {
    if (name == first) continue;
    if (auto plan = fitting_plan(name, topology, placement)) {
      plans.push_back(std::make_shared<Plan>(*std::move(plan)));
    }
  }
  return plans;
}

PlanChoice make_choice(std::string_view algorithm, const Topology& topology,
                       const Placement& placement, std::string_view where) {
  require_algorithm(algorithm, where);
  if (const auto costs = auto_costs(algorithm, topology, where)) {
    return PlanChoice(candidate_plans(topology, placement, where),
                      cost_parameters(topology, *costs));
  }
  auto plan = std::make_shared<Plan>(make_plan(algorithm, topology, placement, where));
  if (!plan->doubles()) return PlanChoice(std::move(plan));
  return PlanChoice(std::make_shared<Plan>(make_plan(default_algorithm(topology, placement),
                                                     topology, placement, where)),
                    std::move(plan));
}

}  // namespace gradcube::control
