#include "control/plan/algorithms/recursive_doubling.h"

#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/rotated_levels.h"

namespace gradcube::control {

Plan make_recursive_doubling_plan(const Topology& topology, const Placement& placement) {
  require_switches("recursive_doubling", topology,
                   "every server sends all to every other under one switch");
  require_company("recursive_doubling", placement);
  require_grid("recursive_doubling", topology, placement);
  PlanThread thread;
  for (const GridDimension& level : placement.dimensions()) {
    thread.steps.push_back({level.radix, level.stride, Pattern::doubling});
  }
  return Plan("recursive_doubling", topology, placement, {thread}, use_of_rotated(topology));
}

}  // namespace gradcube::control
