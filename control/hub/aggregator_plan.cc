#include "control/hub/aggregator_plan.h"

#include <fmt/format.h>
#include <memory>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/cut_threads.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"

namespace gradcube::control::hub {

PlanChoice aggregated(const Topology& topology, const Placement& members,
                      std::span<const ServerId> aggregators, std::string_view where) {
  const AddressSpace& space = topology.space();
  std::vector<ServerId> servers(aggregators.begin(), aggregators.end());
  unsigned threads = 0;
  for (const ServerId aggregator : aggregators) {
    if (!space.contains(aggregator)) {
      throw UsageError(fmt::format("{}: the aggregator: there is no server {} in {}", where,
                                   aggregator, topology.spec()));
    }
    if (members.rank(aggregator).has_value()) {
      throw UsageError(
          fmt::format("{}: the aggregator, server {}, has trainers of the job: expected a server "
                      "that has none; with one that has, take the algorithm ps",
                      where, space.text(aggregator)));
    }
    threads += root_threads(topology, aggregator);
  }
  if (threads > kMostCutThreads) {
    throw UsageError(
        fmt::format("{}: the plan has a thread for each aggregator, on a star for each of its "
                    "ports: expected at most {} in all, and here are {}",
                    where, kMostCutThreads, threads));
  }
  for (Rank rank = 0; rank < members.ranks(); ++rank) servers.push_back(members.server(rank));
  const Placement all = Placement::of(topology, servers, where);
  try {
    auto plan = std::make_shared<const Plan>(make_parameter_server_plan(
        "ps", topology, all, aggregators, RootsPlace::beside_the_trainers));
    require_reach(*plan);
    return PlanChoice(std::move(plan));
  } catch (const MisfitError& error) {
    throw UsageError(fmt::format("{}: {}", where, error.what()));
  }
}

}  // namespace gradcube::control::hub
