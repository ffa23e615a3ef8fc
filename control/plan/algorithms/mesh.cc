#include "control/plan/algorithms/mesh.h"

#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {

Plan make_mesh_plan(const Topology& topology, const Placement& placement) {
  const std::uint32_t ranks = placement.ranks();
  if (ranks < 2 || ranks > kMaxRunnableRadix) {
    throw UsageError(
        fmt::format("algorithm mesh on {} servers: each exchanges with every other in one step; "
                    "expected 2 to {} servers",
                    ranks, kMaxRunnableRadix));
  }
  return Plan("mesh", topology, placement, {{1, {{ranks, 1, Pattern::mesh}}}}, LinkUse::shared);
}

}  // namespace gradcube::control
