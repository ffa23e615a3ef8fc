#include "control/plan/bml.h"

#include "control/plan/requirements.h"
#include "control/plan/rotated_levels.h"

namespace gradcube::control {

Plan make_bml_plan(const Topology& topology, const Placement& placement) {
  require_switches("bml", topology, "every server sends to every other under one switch");
  require_company("bml", placement);
  const std::vector<Pattern> meshes(placement.dimensions().size(), Pattern::mesh);
  return Plan("bml", topology, placement, rotated_threads(placement, meshes));
}

}  // namespace gradcube::control
