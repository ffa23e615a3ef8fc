// BML: gradient synchronization on BCube(n,k) in 2(N-1)/(kN) of the time that a link takes for the
// whole gradient (BML, section 3.2, Algorithm 1). docs/bml.md explains it by example.
//
// The gradient has k shares, one for each of k threads: equal ones, unless the topology's levels
// have different rates (thread_shares.h). Thread t visits the levels t, t+1, ..., t+k-1 (mod k), so
// at every step each level is used by exactly one thread. On a part of the servers k counts the
// levels at which they have more than one digit: those under one switch have one thread, of one
// step.
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/rotated_levels.h"
#include "control/plan/algorithms/thread_shares.h"

namespace gradcube::control {

Plan make_bml_plan(const Topology& topology, const Placement& placement) {
  require_switches("bml", topology, "every server sends to every other under one switch");
  require_company("bml", placement);
  require_grid("bml", topology, placement);
  const std::vector<Pattern> meshes(placement.dimensions().size(), Pattern::mesh);
  std::vector<PlanThread> threads = rotated_threads(placement, meshes);
  std::vector<LevelLinks> levels;
  for (const GridDimension& dimension : placement.dimensions()) {
    levels.push_back({dimension.radix, topology.share_bps(dimension.level)});
  }
  const std::vector<unsigned> weights = balanced_weights(levels);
  for (std::size_t t = 0; t < threads.size(); ++t) threads[t].weight = weights[t];
  return Plan("bml", topology, placement, std::move(threads), use_of_rotated(topology));
}

}  // namespace gradcube::control
