#include "control/hub/aggregator_plan.h"

#include <fmt/format.h>
#include <memory>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"

namespace gradcube::control::hub {

PlanChoice aggregated(const Topology& topology, const Placement& members,
                      std::span<const ServerId> aggregators, std::string_view where) {
  const AddressSpace& space = topology.space();
  std::vector<ServerId> servers(aggregators.begin(), aggregators.end());
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
  }
  for (Rank rank = 0; rank < members.ranks(); ++rank) servers.push_back(members.server(rank));
  const Placement all = Placement::of(topology, servers, where);
  return PlanChoice(std::make_shared<const Plan>(make_parameter_server_plan(
      "ps", topology, all, aggregators, RootsPlace::beside_the_trainers)));
}

}  // namespace gradcube::control::hub
