#include "control/plan/hips.h"

#include <fmt/format.h>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/requirements.h"
#include "control/plan/rotated_levels.h"

namespace gradcube::control {

Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const Pattern> patterns) {
  require_switches(name, topology, "the servers of a group are those under one switch");
  require_company(name, placement);
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
  return Plan(name, topology, placement, rotated_threads(placement, of_stages));
}

}  // namespace gradcube::control
