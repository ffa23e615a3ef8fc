// The plans that a lane of a job runs, one of them for each collective, and its place among the
// job's lanes.
#ifndef GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_
#define GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "control/plan/base/plan.h"
#include "control/plan/plan_choice.h"

namespace gradcube::dataplane {

struct LanePlan {
  // One plan for all collectives.
  LanePlan(std::shared_ptr<const control::Plan> plan, std::int32_t priority)
      : LanePlan(std::make_shared<control::PlanChoice>(std::move(plan)), priority) {}
  LanePlan(std::shared_ptr<const control::PlanChoice> choice, std::int32_t priority)
      : choice(std::move(choice)), priority(priority) {}

  std::shared_ptr<const control::PlanChoice> choice;
  std::int32_t priority;  // a lane of higher priority is served first
};

// By lane. All plans of a job have the same ranks.
using LanePlans = std::vector<LanePlan>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_
