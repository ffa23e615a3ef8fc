// The plan that a lane of a job runs, and its place among the job's lanes.
#ifndef GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_
#define GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "control/plan/plan.h"

namespace gradcube::dataplane {

struct LanePlan {
  std::shared_ptr<const control::Plan> plan;
  std::int32_t priority = 0;  // a lane of higher priority is served first
};

// By lane. All plans of a job have the same ranks.
using LanePlans = std::vector<LanePlan>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_ENGINE_LANE_PLAN_H_
