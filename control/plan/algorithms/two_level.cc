// The two-level scheme (BlueConnect, section 2.3; PHub, section 3.4): the servers under each switch
// of the lowest level send to one of them, these do an all-reduce among themselves, and each sends
// the sum to those under its switch. The others of a group do nothing meanwhile, which is what
// BlueConnect improves on.
//
// There is one thread. Its first step has the pattern root; then follows the all-reduce of the
// papers: halving and doubling for a power of two of groups, else a ring, the cheaper by
// BlueConnect's Eq. 3. The ring goes from neighbour to neighbour (server_cycle.h).
#include <bit>
#include <fmt/format.h>
#include <memory>
#include <span>
#include <utility>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/server_cycle.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {

Plan make_two_level_plan(const Topology& topology, const Placement& placement) {
  require_switches("two-level", topology, "a group are the servers under one switch");
  require_company("two-level", placement);
  require_grid("two-level", topology, placement);
  const std::span<const GridDimension> levels = placement.dimensions();
  if (levels.size() < 2) {
    throw UsageError(
        fmt::format("algorithm two-level on {} servers: all are under one switch; expected servers "
                    "of several groups, or ps, whose one group they are",
                    placement.ranks()));
  }
  const unsigned group = levels.front().radix;
  const unsigned groups = placement.ranks() / group;
  PlanThread thread{1, {{group, 1, Pattern::root}}};
  if (std::has_single_bit(groups)) {
    for (unsigned half = groups / 2; half != 0; half /= 2) {
      thread.steps.push_back({2, group * half, Pattern::mesh});
    }
  } else {
    if (groups > kMaxRunnableRadix) {
      throw UsageError(
          fmt::format("algorithm two-level on {} servers: one ring has at most {} "
                      "servers, and here are {} groups; expected fewer",
                      placement.ranks(), kMaxRunnableRadix, groups));
    }
    auto order = std::make_shared<DigitOrder>();
    unsigned place = 0;
    for (const Rank rank : server_cycle(placement, levels.subspan(1)))
      order->set(place++, rank / group);
    thread.steps.push_back({groups, group, Pattern::ring, std::move(order)});
  }
  return Plan("two-level", topology, placement, {std::move(thread)});
}

}  // namespace gradcube::control
