// A plan as a table for people, in the paper's notation: <0,*,1> is the set of thread 0's pieces
// whose owners have digit 1 at level 0.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_TEXT_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_TEXT_H_

#include <optional>
#include <ostream>

#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::control {

// `rank`: that rank alone; otherwise all.
void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_TEXT_H_
