// From what a trainer asks for to the plans of its lanes.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_PLANS_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_PLANS_H_

#include <memory>
#include <string>
#include <vector>

#include "control/jobs/job_options.h"
#include "control/plan/base/topology.h"
#include "control/settings/server_roles.h"
#include "dataplane/engine/lane_plan.h"

namespace gradcube::dataplane {

// With what the trainer left out: one lane, every server that is no aggregator as a member, the
// algorithm that is the default on the members, and for `auto` how many servers share a core.
control::JobOptions completed(control::JobOptions options, const control::Topology& topology,
                              unsigned servers_per_core,
                              const control::Aggregators& aggregators = {});

// The plans that there are, on one topology: what all servers of a process, and all lanes of a job,
// ask for alike is made once, and is kept as long as one of them has it.
class PlanShelf {
 public:
  // Of completed options. Throws control::UsageError: an algorithm that there is not, or that does
  // not run on the members.
  LanePlans plans(const control::JobOptions& options, const control::Topology& topology);

 private:
  using Choice = std::shared_ptr<const control::PlanChoice>;

  struct Kept {
    std::vector<bcube::ServerId> members;
    unsigned trainers;
    std::string algorithm;
    std::weak_ptr<const control::PlanChoice> choice;
  };

  std::vector<Kept> kept_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINES_JOB_PLANS_H_
