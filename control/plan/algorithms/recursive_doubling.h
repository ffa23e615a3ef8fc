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
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_RECURSIVE_DOUBLING_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_RECURSIVE_DOUBLING_H_

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs two ranks or more that form a grid, under switches: throws a UsageError else.
Plan make_recursive_doubling_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_RECURSIVE_DOUBLING_H_
