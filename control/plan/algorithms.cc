#include "control/plan/algorithms.h"

#include <bit>
#include <charconv>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <optional>
#include <system_error>
#include <utility>

#include "control/base/errors.h"
#include "control/base/lists.h"
#include "control/base/printable.h"
#include "control/plan/algorithms/cut_threads.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/auto_plans.h"
#include "control/plan/base/step_pattern.h"
#include "control/plan/plan_cost.h"

namespace gradcube::control {
namespace {

// "hips:mesh,mesh" is hips, with these parameters.
struct Request {
  std::string_view algorithm;  // all of it
  std::string_view name;
  std::optional<std::string_view> parameters;
  std::string what;  // the begin of an error about the parameters
};

Request parted(std::string_view algorithm, std::string what) {
  const std::size_t colon = algorithm.find(':');
  if (colon == std::string_view::npos) return {algorithm, algorithm, {}, std::move(what)};
  return {algorithm, algorithm.substr(0, colon), algorithm.substr(colon + 1), std::move(what)};
}

std::vector<std::string_view> pattern_names() {
  std::vector<std::string_view> names;
  for (const Pattern pattern : kPatterns) names.push_back(pattern_name(pattern));
  return names;
}

// "mesh", or "2xroot".
std::optional<StagePattern> stage_pattern(std::string_view text) {
  unsigned roots = 1;
  const std::size_t times = text.find('x');
  if (times != std::string_view::npos) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + times, roots);
    if (error != std::errc() || end != text.data() + times || text[0] == '0') return std::nullopt;
    text.remove_prefix(times + 1);
  }
  const std::optional<Pattern> pattern = pattern_named(text);
  if (!pattern || (times != std::string_view::npos && *pattern != Pattern::root)) {
    return std::nullopt;
  }
  return StagePattern{*pattern, roots};
}

// Of "mesh,mesh". The message of a UsageError begins with `what`.
std::vector<StagePattern> read_patterns(std::string_view list, const std::string& what) {
  std::vector<StagePattern> patterns;
  for (const std::string_view name : split(list, ',')) {
    const std::optional<StagePattern> pattern = stage_pattern(name);
    if (!pattern) {
      throw UsageError(fmt::format(
          "{}: no stage runs the pattern {}; expected {}, or 2xroot for two roots in each group",
          what, quoted(name), fmt::join(pattern_names(), ", ")));
    }
    patterns.push_back(*pattern);
  }
  return patterns;
}

using Make = Plan (*)(const Topology&, const Placement&);

template <Make kMake>
Plan make_alone(const Request& request, const Topology& topology, const Placement& placement) {
  if (!request.parameters) return kMake(topology, placement);
  throw UsageError(fmt::format("{}: {} takes no parameters; expected {} alone", request.what,
                               request.name, request.name));
}

Plan make_hips(const Request& request, const Topology& topology, const Placement& placement) {
  if (!request.parameters) {
    throw UsageError(
        fmt::format("{}: expected a pattern for all stages or a list with one for each, for "
                    "example hips:mesh or hips:mesh,mesh",
                    request.what));
  }
  return make_hips_plan(std::string(request.algorithm), topology, placement,
                        read_patterns(*request.parameters, request.what));
}

Plan make_blueconnect(const Request& request, const Topology& topology,
                      const Placement& placement) {
  return make_blueconnect_plan(std::string(request.algorithm), topology, placement,
                               request.parameters, request.what);
}

// The first of the servers whose ports have most together.
ServerId widest(const Topology& topology, const Placement& placement) {
  const auto width = [&](ServerId server) {
    return topology.space().ports(server) * topology.port_bps(server, 0);
  };
  ServerId best = placement.server(0);
  for (Rank rank = 1; rank < placement.ranks() && topology.has_own_ports(); ++rank) {
    if (width(placement.server(rank)) > width(best)) best = placement.server(rank);
  }
  return best;
}

// "ps:2,1" is at server [2,1], and "ps:2,1 2,2" at two.
Plan make_ps(const Request& request, const Topology& topology, const Placement& placement) {
  const std::vector<ServerId> servers =
      request.parameters ? parse_servers(topology, *request.parameters, request.what + ":")
                         : std::vector<ServerId>{widest(topology, placement)};
  return make_parameter_server_plan(std::string(request.algorithm), topology, placement, servers);
}

struct Algorithm {
  std::string_view name;
  Plan (*make)(const Request&, const Topology&, const Placement&);
  std::string_view examples;  // names that can be asked for
};

constexpr std::string_view kSwitched = "bml";
constexpr std::string_view kCabled = "hips:ring";
constexpr std::string_view kOnTree = "blueconnect";
constexpr std::string_view kShort = "recursive_doubling";

constexpr Algorithm kAlgorithms[] = {
    {kSwitched, make_alone<make_bml_plan>, kSwitched},
    {kOnTree, make_blueconnect, "blueconnect,blueconnect:ring,blueconnect:halving_doubling"},
    {"halving_doubling", make_alone<make_halving_doubling_plan>, "halving_doubling"},
    {"hips", make_hips, "hips:mesh,hips:ring,hips:root"},
    {"mesh", make_alone<make_mesh_plan>, "mesh"},
    {"ps", make_ps, "ps"},
    {kShort, make_alone<make_recursive_doubling_plan>, kShort},
    {"ring", make_alone<make_ring_plan>, "ring"},
    {"two-level", make_alone<make_two_level_plan>, "two-level"}};

Request request_of(std::string_view algorithm, std::string_view where) {
  std::string what = fmt::format("{} {}", where, quoted(algorithm));
  if (algorithm.size() > kMostNameBytes) {
    throw UsageError(
        fmt::format("{}: the name has {} bytes; expected at most {}, as no job can ask "
                    "for a longer one",
                    what, algorithm.size(), kMostNameBytes));
  }
  return parted(algorithm, std::move(what));
}

const Algorithm& algorithm_of(const Request& request) {
  for (const Algorithm& known : kAlgorithms) {
    if (known.name == request.name) return known;
  }
  throw UsageError(fmt::format("{}: there is no such algorithm; expected {}, or {}", request.what,
                               fmt::join(algorithm_names(), ", "), kAuto));
}

Plan made(const Request& request, const Topology& topology, const Placement& placement) {
  Plan plan = cut_threads(algorithm_of(request).make(request, topology, placement));
  require_reach(plan);
  return plan;
}

// To find out which algorithms run on so many ranks takes a few milliseconds at most: a daemon does
// it on its control thread, as often as a client asks.
constexpr std::uint32_t kMostRanksToTry = 1024;

// What runs on these servers, as the end of a refusal.
std::string expected_names(const Topology& topology, const Placement& placement) {
  const std::uint32_t ranks = placement.ranks();
  // Only halving_doubling runs on more that form no grid.
  if (!placement.is_grid() && ranks > kMaxRunnableRadix && !std::has_single_bit(ranks)) {
    return fmt::format("expected {} servers or fewer, and {}", kMaxRunnableRadix,
                       topology.space().cabled() ? "ring, where peers are close"
                                                 : "mesh, ring or ps, which run on any of them");
  }
  if (ranks > kMostRanksToTry) {
    return "expected one that runs on these servers: `gradcube plan --algorithm NAME` tells of "
           "each whether it does";
  }
  std::vector<std::string> names;
  for (const std::string& name : algorithm_names()) {
    if (fitting_plan(name, topology, placement)) names.push_back(name);
  }
  if (names.empty()) return "expected other servers, as no algorithm runs on these";
  return fmt::format("expected one that runs on these servers: {}", fmt::join(names, ", "));
}

// Of the algorithms that run on servers that form no grid.
std::string_view fastest_on_any_servers(const Topology& topology, const Placement& placement) {
  constexpr double kBytes = 64e6;
  const CostParameters parameters = cost_parameters(topology, MessageCosts());
  std::string_view fastest = "ring";
  double least = std::numeric_limits<double>::infinity();
  for (const std::string_view name : {"ring", "mesh", "halving_doubling"}) {
    const std::optional<Plan> plan = fitting_plan(name, topology, placement);
    if (!plan) continue;
    const double seconds =
        PlanCost(*plan).time(CollectiveKind::all_reduce, kBytes, parameters).seconds();
    if (seconds >= least) continue;
    least = seconds;
    fastest = name;
  }
  return fastest;
}

}  // namespace

std::string_view default_algorithm(const Topology& topology, const Placement& placement) {
  if (!placement.is_grid()) return fastest_on_any_servers(topology, placement);
  if (topology.is_tree() && placement.dimensions().size() > 1) return kOnTree;
  return topology.space().cabled() ? kCabled : kSwitched;
}

std::string_view default_algorithm(const Topology& topology) {
  return default_algorithm(topology, Placement::all(topology));
}

std::string_view default_algorithm_of_jobs(const Topology& topology, const Placement& placement) {
  const std::string_view of_all = default_algorithm(topology, placement);
  const bool doubles = of_all == kSwitched && placement.ranks() > 1 && !topology.has_rates();
  return doubles ? kShort : of_all;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : kAlgorithms) {
    for (const std::string_view name : split(algorithm.examples, ',')) names.emplace_back(name);
  }
  return names;
}

void require_algorithm(std::string_view algorithm, std::string_view where) {
  const Request request = request_of(algorithm, where);
  if (request.name != kAuto) algorithm_of(request);
}

Plan make_plan(std::string_view algorithm, const Topology& topology, const Placement& placement,
               std::string_view where) {
  try {
    return made(request_of(algorithm, where), topology, placement);
  } catch (const MisfitError& error) {
    throw UsageError(fmt::format("{}; {}", error.what(), expected_names(topology, placement)));
  }
}

std::optional<Plan> fitting_plan(std::string_view algorithm, const Topology& topology,
                                 const Placement& placement) {
  try {
    return made(request_of(algorithm, ""), topology, placement);
  } catch (const UsageError&) {
    return std::nullopt;
  }
}

Plan make_plan(std::string_view algorithm, const Topology& topology, std::string_view where) {
  return make_plan(algorithm, topology, Placement::all(topology), where);
}

}  // namespace gradcube::control
