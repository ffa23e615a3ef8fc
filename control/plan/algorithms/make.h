// The plan of each algorithm. The first comment of the algorithm's source says what the plan is.
// BlueConnect's is made by a header of its own (blueconnect.h), with what is read from its name.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_

#include <span>
#include <string>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs a switch in every dimension, and two ranks: throws a UsageError for any other topology,
// such as a torus, and for a single rank.
Plan make_bml_plan(const Topology& topology, const Placement& placement);

// Needs a power of two of ranks, from 2: throws a UsageError else.
Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement);

// patterns: one for all stages, or one for each. `name` is the plan's, as it was asked for:
// "hips:mesh". Throws a UsageError for another number of patterns, and for a single rank.
Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const Pattern> patterns);

// Needs 2 to 256 ranks: throws a UsageError else.
Plan make_mesh_plan(const Topology& topology, const Placement& placement);

// `name` is the plan's, as it was asked for: "ps:2,1". Its contribution is added first, and then
// those of the others by ascending rank. Needs 2 to 256 ranks, one of them at `server`: throws a
// UsageError else.
Plan make_parameter_server_plan(const std::string& name, const Topology& topology,
                                const Placement& placement, ServerId server);

// Needs two ranks or more that form a grid, under switches: throws a UsageError else.
Plan make_recursive_doubling_plan(const Topology& topology, const Placement& placement);

// On a torus there are two threads, which go round in opposite directions. Needs 2 to 256 ranks:
// throws a UsageError else.
Plan make_ring_plan(const Topology& topology, const Placement& placement);

// Needs a switch in every dimension, several digits of the servers at two levels or more, and at
// most 256 groups unless they are a power of two: throws a UsageError else.
Plan make_two_level_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_
