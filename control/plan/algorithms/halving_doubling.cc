// Recursive halving and doubling over all ranks (Thakur et al., 2005; BlueConnect, section 2.2, Eq.
// 2). With N = 2^q ranks there is one thread of q steps. At step w of the aggregation stage each
// rank exchanges with the one whose number differs from its own in bit q-1-w alone: half of what
// both still work on goes each way. The broadcast stage doubles what each has, the bits in
// ascending order.
//
// Every step is a mesh over a digit of radix 2. As N is a power of two, so is the number of digits
// that the servers have at each level: each step lies within one level, and all peers are
// neighbours.
#include <bit>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"

namespace gradcube::control {

Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement) {
  require_company("halving_doubling", placement);
  const std::uint32_t ranks = placement.ranks();
  if (!std::has_single_bit(ranks)) {
    throw UsageError(
        fmt::format("algorithm halving_doubling on {} servers: every step halves them; expected a "
                    "power of two of servers, or {}",
                    ranks, algorithms_of_any_number(topology, placement)));
  }
  PlanThread thread;
  for (std::uint32_t stride = ranks / 2; stride != 0; stride /= 2) {
    thread.steps.push_back({2, stride, Pattern::mesh});
  }
  // In a ring, and where servers are missing, the two are not always neighbours.
  const bool one_hop = placement.is_grid() && !topology.space().cabled();
  const LinkUse use = one_hop ? LinkUse::exclusive : LinkUse::shared;
  return Plan("halving_doubling", topology, placement, {thread}, use);
}

}  // namespace gradcube::control
