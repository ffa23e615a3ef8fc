// From what a trainer asks for to the plans of its lanes.
#ifndef GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_
#define GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_

#include "control/jobs/job_options.h"
#include "control/plan/topology.h"
#include "dataplane/engine/lane_plan.h"

namespace gradcube::dataplane {

// With what the trainer left out: one lane, the default algorithm, every server as a member.
control::JobOptions completed(control::JobOptions options, const control::Topology& topology);

// Of completed options. Throws control::UsageError: members that form no grid, an algorithm that
// there is not.
LanePlans make_plans(const control::JobOptions& options, const control::Topology& topology);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_
