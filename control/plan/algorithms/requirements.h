// What algorithms require of the servers they run on, and the words in which they refuse.
//
// `algorithm` is the name as it was asked for: "hips:mesh".
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_

#include <string_view>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Throws a UsageError unless every dimension has a switch. `why` says what it is needed for, as the
// first half of a sentence.
void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why);

// Throws a UsageError if two peers of the plan are farther apart than a frame can go.
void require_reach(const Plan& plan);

// Whether the ranks are whole rings of a torus: in each dimension of the logical grid one hop leads
// from a digit to the next, and from the last to the first.
bool are_whole_rings(const Topology& topology, const Placement& placement);

// Throws a UsageError, which says what runs on any servers, unless they form a grid.
void require_grid(std::string_view algorithm, const Topology& topology, const Placement& placement);

// What runs on these servers however many they are, as the end of a sentence: "bml or hips:mesh,
// which run on any number".
std::string_view algorithms_of_any_number(const Topology& topology, const Placement& placement);

// Throws a UsageError for a single rank.
void require_company(std::string_view algorithm, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_
