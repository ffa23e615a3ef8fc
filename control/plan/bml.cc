#include "control/plan/bml.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control {

Plan make_bml_plan(const Topology& topology, const Placement& placement) {
  if (!std::all_of(topology.dimensions().begin(), topology.dimensions().end(),
                   [](const Dimension& d) { return d.link == Link::switched; })) {
    throw UsageError(
        fmt::format("algorithm bml on topology {}: every server sends to every other under one "
                    "switch, and here only adjacent servers are joined; expected bcube:n,k or "
                    "star:N, for example bcube:3,2",
                    topology.spec()));
  }
  const std::vector<GridDimension>& levels = placement.dimensions();
  if (levels.empty()) {
    throw UsageError(
        "algorithm bml: one server alone has nobody to exchange with; expected two "
        "servers or more");
  }
  std::vector<PlanThread> threads(levels.size());
  for (std::size_t t = 0; t < threads.size(); ++t) {
    for (std::size_t w = 0; w < levels.size(); ++w) {
      const GridDimension& level = levels[(t + w) % levels.size()];
      threads[t].steps.push_back({level.radix, level.stride, Pattern::mesh});
    }
  }
  return Plan("bml", topology, placement, std::move(threads));
}

}  // namespace gradcube::control
