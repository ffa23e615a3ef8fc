// A plan as JSON, for tools (docs/bml.md describes the format). It is written to the stream as it
// is computed, so memory stays small for any topology, and one server of 65536 takes milliseconds.
#ifndef GRADCUBE_CONTROL_PLAN_PLAN_JSON_H_
#define GRADCUBE_CONTROL_PLAN_PLAN_JSON_H_

#include <optional>
#include <ostream>

#include "control/plan/assignment.h"
#include "control/plan/base/plan.h"

namespace gradcube::control {

// A list of pieces longer than this is written as one entry in which null stands for every digit.
inline constexpr std::uint32_t kMaxListedPieces = 1024;

// One JSON object and a newline. `rank`: that rank alone; otherwise all.
void write_plan_json(std::ostream& out, const Plan& plan, const Assignment& assignment,
                     std::optional<Rank> rank);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PLAN_JSON_H_
