// The algorithms that can make a plan, by name.
//
// A name may have parameters behind a colon: "hips:mesh,mesh", or servers, "ps:2,1 2,2". All of it
// is the algorithm's name wherever one travels: in a job's options, on the wire and in the plan. It
// has at most 55 bytes, enough for a parameter of four letters for each of 7 levels, or for
// "blueconnect:4x4,halving_doubling,halving_doubling".
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// What a job's options have room for (trainer/shared_layout.h, kAlgorithmNameBytes).
inline constexpr std::size_t kMostNameBytes = 55;

// What runs collectives of all kinds and sizes where no other is asked for: bml; hips:ring where
// cables join the servers; and blueconnect on several levels of a tree, where a server has one port
// for them all. Where they form no grid it is the one of ring, mesh and halving_doubling that takes
// the least modelled time (plan_cost.h) for a large all-reduce.
std::string_view default_algorithm(const Topology& topology, const Placement& placement);
// The same for all servers of the topology.
std::string_view default_algorithm(const Topology& topology);
// What a job on these servers gets that asks for none: the above; but recursive_doubling, beside
// which the above runs all but what is short (plan_choice.h), in the place of bml where no link has
// a rate: there it is messages that short all-reduces take their time for.
std::string_view default_algorithm_of_jobs(const Topology& topology, const Placement& placement);
inline constexpr std::string_view kDefaults =
    "bml, and in a job without a rate recursive_doubling for short all-reduces beside it; "
    "hips:ring on a torus; blueconnect on a tree; mesh, ring or halving_doubling on servers that "
    "form no grid";

// Of each algorithm a name that can be asked for; of one with parameters, for each value that a
// parameter can have.
std::vector<std::string> algorithm_names();

// Throws a UsageError for a name that no servers run: one that is too long, or of no algorithm, of
// which `auto` is one. What stands behind the colon is not read.
void require_algorithm(std::string_view algorithm, std::string_view where);

// Throws a UsageError as require_algorithm() does, when there is no such parameter (naming those
// there are), or it does not fit the topology and the placement (naming what does, of at most
// 1,024 ranks). `where` begins the message: "--algorithm". `auto` is no such name: make_choice()
// (auto_plans.h) takes it, too.
Plan make_plan(std::string_view algorithm, const Topology& topology, const Placement& placement,
               std::string_view where);

// The same for all servers of the topology.
Plan make_plan(std::string_view algorithm, const Topology& topology, std::string_view where);

// Nothing where make_plan() throws: the algorithm needs other servers, such as a power of two of
// them, or fewer.
std::optional<Plan> fitting_plan(std::string_view algorithm, const Topology& topology,
                                 const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_H_
