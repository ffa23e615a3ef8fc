// A plan as JSON, for tools (docs/bml.md describes the format), and as a table for people, in the
// paper's notation: <0,*,1> is the set of thread 0's pieces whose owners have digit 1 at level 0.
//
// Both are written server by server, so memory stays small for any topology, and one server of
// 65536 takes milliseconds.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_OUTPUT_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_OUTPUT_H_

#include <optional>
#include <ostream>

#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::control {

// In JSON a list of pieces longer than this is one entry in which null stands for every digit.
inline constexpr std::uint32_t kMaxListedPieces = 1024;

// One JSON object and a newline. `rank`: that rank alone; otherwise all.
void write_plan_json(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank);
void write_plan_text(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_OUTPUT_H_
