#include "dataplane/daemon/engines/job_plans.h"

#include <algorithm>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/auto_plans.h"

namespace gradcube::dataplane {

namespace {

// Of members that cannot be placed any will do: job control refuses them, and says why.
std::string_view default_algorithm_of(const std::vector<bcube::ServerId>& members,
                                      const control::Topology& topology) {
  try {
    return control::default_algorithm_of_jobs(topology,
                                              control::Placement::of(topology, members, "members"));
  } catch (const control::UsageError&) {
    return control::default_algorithm(topology);
  }
}

}  // namespace

control::JobOptions completed(control::JobOptions options, const control::Topology& topology,
                              unsigned servers_per_core, const control::Aggregators& aggregators) {
  if (options.lanes.empty()) options.lanes.emplace_back();
  if (options.members.empty()) {
    options.members = control::trainers_servers(topology, aggregators);
  }
  std::string_view by_default;  // found once: it takes time where the members form no grid
  for (control::LaneOptions& lane : options.lanes) {
    if (lane.algorithm.empty()) {
      if (by_default.empty()) by_default = default_algorithm_of(options.members, topology);
      lane.algorithm = by_default;
    }
    lane.algorithm = control::completed_auto(lane.algorithm, servers_per_core);
  }
  return options;
}

LanePlans PlanShelf::plans(const control::JobOptions& options, const control::Topology& topology) {
  std::erase_if(kept_, [](const Kept& each) { return each.choice.expired(); });
  LanePlans lanes;
  for (const control::LaneOptions& lane : options.lanes) {
    const auto known = std::ranges::find_if(kept_, [&](const Kept& each) {
      return each.trainers == options.trainers && each.algorithm == lane.algorithm &&
             each.members == options.members;
    });
    Choice choice = known == kept_.end() ? nullptr : known->choice.lock();
    if (choice == nullptr) {
      const auto placement = control::Placement::of(topology, options.members, "members")
                                 .with_trainers(options.trainers, "trainers_per_server");
      choice = std::make_shared<control::PlanChoice>(
          control::make_choice(lane.algorithm, topology, placement, "algorithm"));
      kept_.push_back({options.members, options.trainers, lane.algorithm, choice});
    }
    lanes.emplace_back(std::move(choice), lane.priority);
  }
  return lanes;
}

}  // namespace gradcube::dataplane
