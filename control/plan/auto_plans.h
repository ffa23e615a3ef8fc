// The algorithm `auto`: which plans it chooses from, and by which costs.
//
// Its name may carry what a message costs: "auto:1us,30us" is that a core takes 1 us for a message
// at a server, in or out, and that a message takes 30 us to a neighbour of any level;
// "auto:1us,20us,40us" is 20 us on level 0 and 40 us on level 1; "auto:1us,30us/8" is that a core
// does this for 8 servers. So all trainers of a job, which ask for the same algorithm, choose
// alike. `gradcube model fit` measures these costs.
//
// Rates are the topology's. Links without a rate are taken for links of kAssumedRate.
#ifndef GRADCUBE_CONTROL_PLAN_AUTO_PLANS_H_
#define GRADCUBE_CONTROL_PLAN_AUTO_PLANS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"
#include "control/plan/plan_choice.h"
#include "control/plan/plan_cost.h"

namespace gradcube::control {

inline constexpr std::string_view kAuto = "auto";
inline constexpr std::uint64_t kAssumedRate = 10'000'000'000;  // bits per second

// What a message costs; in nanoseconds, as a name can say them.
struct MessageCosts {
  // As measured where a few servers' pollers share a core.
  static constexpr std::int64_t kOverhead = 1'000;
  static constexpr std::int64_t kLatency = 40'000;

  std::int64_t overhead = kOverhead;               // that a core takes for it, in or out
  std::vector<std::int64_t> latency = {kLatency};  // of all levels, or of each
  unsigned servers_per_core = 1;

  bool operator==(const MessageCosts&) const = default;
};

// "auto" or "auto:1us,20us,40us/8". Nothing if it is another algorithm's name. Throws a UsageError,
// which begins with `where`, for parameters that cannot be read or that other levels have.
std::optional<MessageCosts> auto_costs(std::string_view algorithm, const Topology& topology,
                                       std::string_view where);

// "auto:1us,20us,40us/8".
std::string auto_name(const MessageCosts& costs);

// The algorithm, but of `auto` alone the name with the costs where so many servers share a core.
std::string completed_auto(const std::string& algorithm, unsigned servers_per_core);

// What plans on this topology cost. The costs are those of all its levels, or of each.
CostParameters cost_parameters(const Topology& topology, const MessageCosts& costs);

// One plan for each name in algorithm_names() that fits; the default algorithm's is the first.
// Throws the UsageError of the default algorithm where that does not fit.
std::vector<std::shared_ptr<const Plan>> candidate_plans(const Topology& topology,
                                                         const Placement& placement,
                                                         std::string_view where);

// The plans that a lane with this algorithm runs: of `auto` those that it chooses from, of any
// other the one of make_plan(), whose errors it throws. Beside one that cannot run all collectives
// (plan_choice.h) there is that of the default algorithm, the first.
PlanChoice make_choice(std::string_view algorithm, const Topology& topology,
                       const Placement& placement, std::string_view where);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_AUTO_PLANS_H_
