// What algorithms require of the servers they run on, and the words in which they refuse.
//
// `algorithm` is the name as it was asked for: "hips:mesh".
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_

#include <cstdint>
#include <string_view>

#include "control/base/errors.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// The algorithm does not run on these servers. It says why; make_plan() adds what does.
class MisfitError : public UsageError {
 public:
  using UsageError::UsageError;
};

// Throws a MisfitError unless every dimension has a switch. `why` says what it is needed for, as
// the first half of a sentence.
void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why);

// Throws a MisfitError if two peers of the plan are farther apart than a frame can go.
void require_reach(const Plan& plan);

// Whether the ranks are whole rings of a torus: in each dimension of the logical grid one hop leads
// from a digit to the next, and from the last to the first.
bool are_whole_rings(const Topology& topology, const Placement& placement);

// Throws a MisfitError unless the servers form a grid.
void require_grid(std::string_view algorithm, const Topology& topology, const Placement& placement);

// Throws a MisfitError for more than a step can have. `what` are those that take part in it.
void require_one_step(std::string_view algorithm, std::uint32_t count,
                      std::string_view what = "servers");

// Throws a UsageError for a single rank, on which nothing runs.
void require_company(std::string_view algorithm, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_REQUIREMENTS_H_
