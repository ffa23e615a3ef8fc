// Mesh: the flat parameter server of peers (BML, section 2.2: P2P). Every server is the parameter
// server of one N-th of the gradient, and exchanges with all others directly. There is one thread
// and one step; on BCube most peers are several hops apart, and relays lead there. It is what the
// papers compare with.
//
// Level by level the routes load every link alike, but in one round several of them share a link.
#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
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
