// HiPS: synchronization in stages, one for each level of the topology (HiPS, section 3.2, Algorithm
// 1). In a stage the servers under one switch exchange by a pattern, which may be another in each
// stage. h processes run in parallel, process t from level t on (section 3.3): they are the threads
// of the plan. With the pattern mesh in every stage the exchanges are those of BML. On a torus, the
// group of a stage is a ring; where a stage has the pattern ring, there are 2h threads, a pair from
// each level on, which go round in opposite directions (section 4.2).
//
// A process visits its stages in the order 0..h-1 in the aggregation stage of the plan (the paper's
// Sync1) and backwards in the broadcast stage (Sync2). h counts the levels at which the servers
// have more than one digit.
#include <algorithm>
#include <fmt/format.h>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms/make.h"
#include "control/plan/algorithms/requirements.h"
#include "control/plan/algorithms/rotated_levels.h"

namespace gradcube::control {

Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const Pattern> patterns) {
  require_company(name, placement);
  require_grid(name, topology, placement);
  const std::size_t stages = placement.dimensions().size();
  std::vector<Pattern> of_stages(patterns.begin(), patterns.end());
  if (of_stages.size() == 1) of_stages.resize(stages, patterns.front());
  if (of_stages.size() != stages) {
    throw UsageError(
        fmt::format("algorithm {} on {} servers: it lists {} patterns; expected 1 for all stages{}",
                    name, placement.ranks(), patterns.size(),
                    stages == 1 ? ", of which there is one here"
                                : fmt::format(", or {}: one for each level at which the servers "
                                              "have several digits",
                                              stages)));
  }
  if (!topology.space().cabled()) {
    return Plan(name, topology, placement, rotated_threads(placement, of_stages),
                use_of_rotated(topology));
  }
  const auto rings = std::count(of_stages.begin(), of_stages.end(), Pattern::ring);
  const bool adjacent_alone =
      static_cast<std::size_t>(rings) == stages && are_whole_rings(topology, placement);
  return Plan(name, topology, placement,
              rings > 0 ? counter_rotating_threads(placement, of_stages)
                        : rotated_threads(placement, of_stages),
              adjacent_alone ? LinkUse::exclusive : LinkUse::shared);
}

}  // namespace gradcube::control
