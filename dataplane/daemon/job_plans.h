// From what a trainer asks for to the plans of its lanes.
#ifndef GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_
#define GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_

#include "control/jobs/job_options.h"
#include "control/plan/topology.h"
#include "control/settings/server_roles.h"
#include "dataplane/engine/lane_plan.h"

namespace gradcube::dataplane {

// With what the trainer left out: one lane, every server that is no aggregator as a member, the
// algorithm that is the default on the members, and for `auto` how many servers share a core.
control::JobOptions completed(control::JobOptions options, const control::Topology& topology,
                              unsigned servers_per_core,
                              const control::Aggregators& aggregators = {});

// Of completed options. Throws control::UsageError: an algorithm that there is not, or that does
// not run on the members.
LanePlans make_plans(const control::JobOptions& options, const control::Topology& topology);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_JOB_PLANS_H_
