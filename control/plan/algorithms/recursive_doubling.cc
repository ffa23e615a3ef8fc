// Recursive doubling, for short buffers: the all-reduce of small messages in MPI (Thakur et al.,
// 2005), and a row of MG-WFBP's Table II. There a rank exchanges all that it has with one other in
// each step, and the ranks that have the same sum double.
//
// Here a step is a level of the logical grid, level 0 first: each rank sends all that it has to all
// others under its switch, and adds theirs to its own. So in each step the ranks that have the same
// sum become as many times more as the level has digits, and in the end all have the sum of all. An
// all-reduce takes as many exchanges, one after the other, as there are levels; `bml` takes twice
// as many, each of a part of the buffer. Under one switch everyone sends to everyone once.
//
// Every rank adds the same values in the same order: those of a step by ascending digit. So all end
// with the same bits.
#include "control/plan/algorithms/make.h"
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
