#include "dataplane/daemon/job_plans.h"

#include <memory>
#include <numeric>
#include <utility>

#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"

namespace gradcube::dataplane {

control::JobOptions completed(control::JobOptions options, const control::Topology& topology) {
  if (options.lanes.empty()) options.lanes.emplace_back();
  for (control::LaneOptions& lane : options.lanes) {
    if (lane.algorithm.empty()) lane.algorithm = control::default_algorithm(topology);
  }
  if (options.members.empty()) {
    options.members.resize(topology.servers());
    std::iota(options.members.begin(), options.members.end(), 0U);
  }
  return options;
}

LanePlans make_plans(const control::JobOptions& options, const control::Topology& topology) {
  LanePlans lanes;
  const auto placement = control::Placement::grid(topology, options.members, "members")
                             .with_trainers(options.trainers, "trainers_per_server");
  for (const control::LaneOptions& lane : options.lanes) {
    lanes.emplace_back(std::make_shared<control::PlanChoice>(
                           control::make_choice(lane.algorithm, topology, placement, "algorithm")),
                       lane.priority);
  }
  return lanes;
}

}  // namespace gradcube::dataplane
