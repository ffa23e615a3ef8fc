#include "control/plan/halving_doubling.h"

#include <bit>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/requirements.h"

namespace gradcube::control {

Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement) {
  require_company("halving_doubling", placement);
  const std::uint32_t ranks = placement.ranks();
  if (!std::has_single_bit(ranks)) {
    throw UsageError(
        fmt::format("algorithm halving_doubling on {} servers: every step halves them; expected a "
                    "power of two of servers, or bml or hips:mesh, which run on any number",
                    ranks));
  }
  PlanThread thread;
  for (std::uint32_t stride = ranks / 2; stride != 0; stride /= 2) {
    thread.steps.push_back({2, stride, Pattern::mesh});
  }
  // In a ring the two are not always adjacent.
  const LinkUse use = topology.space().cabled() ? LinkUse::shared : LinkUse::exclusive;
  return Plan("halving_doubling", topology, placement, {thread}, use);
}

}  // namespace gradcube::control
