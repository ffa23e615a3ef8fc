// HiPS: synchronization in stages, one for each level of the topology (HiPS, section 3.2, Algorithm
// 1). In a stage the servers under one switch exchange by a pattern, which may be another in each
// stage. h processes run in parallel, process t from level t on (section 3.3): they are the threads
// of the plan. With the pattern mesh in every stage the exchanges are those of BML. On a torus, the
// group of a stage is a ring; where a stage has the pattern ring, there are 2h threads, a pair from
// each level on, which go round in opposite directions (section 4.2).
//
// A process visits its stages in the order 0..h-1 in the aggregation stage of the plan (the paper's
// Sync1) and backwards in the broadcast stage (Sync2). h counts the levels at which the servers
// have more than one digit.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_HIPS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_HIPS_H_

#include <span>
#include <string>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// patterns: one for all stages, or one for each. `name` is the plan's, as it was asked for:
// "hips:mesh". Throws a UsageError for another number of patterns, and for a single
// rank.
Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const Pattern> patterns);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_HIPS_H_
