// Threads that visit the levels of the logical grid in rotated order: thread t visits the levels
// t, t+1, ..., t+h-1 (mod h), a step for each, and there are h threads. So at every step each level
// is used by exactly one thread. BML and HiPS have these threads. On a tree all levels share a
// server's port, and so do the threads.
//
// On a torus two threads begin at each level, 2t and 2t+1, and the rings of the one go to ascending
// digits and those of the other to descending ones. So at every step of rings each port sends for
// exactly one thread, and thread t begins at port t (HiPS, section 4.2).
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_ROTATED_LEVELS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_ROTATED_LEVELS_H_

#include <span>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// patterns[w] is that of step w of every thread: one for each of placement.dimensions().
std::vector<PlanThread> rotated_threads(const Placement& placement,
                                        std::span<const Pattern> patterns);

// The same for both directions: 2 threads for each. Only their steps of the pattern ring differ.
std::vector<PlanThread> counter_rotating_threads(const Placement& placement,
                                                 std::span<const Pattern> patterns);

// Where dimensions have switches: each has a port of its own, but on a tree they share one.
inline LinkUse use_of_rotated(const Topology& topology) {
  return topology.is_tree() ? LinkUse::shared : LinkUse::exclusive;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_ROTATED_LEVELS_H_
