#include "control/plan/mesh.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/step_pattern.h"

namespace gradcube::control {

Plan make_mesh_plan(const Topology& topology, const Placement& placement) {
  if (!std::all_of(topology.dimensions().begin(), topology.dimensions().end(),
                   [](const Dimension& d) { return d.link == Link::switched; })) {
    throw UsageError(
        fmt::format("algorithm mesh on topology {}: a route is a hop over a switch for each digit, "
                    "and here only adjacent servers are joined; expected bcube:n,k or star:N, for "
                    "example bcube:3,2",
                    topology.spec()));
  }
  const std::uint32_t ranks = placement.ranks();
  if (ranks < 2 || ranks > step_pattern::kMaxRunnableRadix) {
    throw UsageError(
        fmt::format("algorithm mesh on {} servers: each exchanges with every other in one step; "
                    "expected 2 to {} servers",
                    ranks, step_pattern::kMaxRunnableRadix));
  }
  return Plan("mesh", topology, placement, {{1, {{ranks, 1, Pattern::mesh}}}}, LinkUse::shared);
}

}  // namespace gradcube::control
