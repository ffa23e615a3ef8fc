#include "control/plan/requirements.h"

#include <algorithm>
#include <fmt/format.h>

#include "bcube_forwarding/route.h"
#include "control/base/errors.h"

namespace gradcube::control {

void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why) {
  if (!topology.space().cabled()) return;
  throw UsageError(
      fmt::format("algorithm {} on topology {}: {}, and here cables join only adjacent servers; "
                  "expected hips:ring, ring, blueconnect, or hips:mesh, mesh or ps, where servers "
                  "relay",
                  algorithm, topology.spec(), why));
}

void require_reach(const Plan& plan) {
  const AddressSpace& space = plan.space();
  if (bcube::diameter(space) <= bcube::kMaxLevels) return;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const PlanStep& step = plan.step(thread, w);
      for (Rank rank = 0; rank < plan.ranks(); ++rank) {
        const unsigned peers = step.is_ring() ? 1 : step.radix - 1;
        for (unsigned r = 1; r <= peers; ++r) {
          const unsigned digit = step_pattern::digit_at_offset(step.radix, step.digit(rank), r);
          const ServerId from = plan.placement().server(rank);
          const ServerId to = plan.placement().server(step.with_digit(rank, digit));
          const unsigned hops = bcube::distance(space, from, to);
          if (hops <= bcube::kMaxLevels) continue;
          throw UsageError(fmt::format(
              "algorithm {} on topology {}: {} sends to {}, {} hops away, and a frame takes {} at "
              "most; expected hips:ring, ring or blueconnect:ring over all servers, where all "
              "peers are adjacent",
              plan.algorithm(), plan.topology().spec(), space.text(from), space.text(to), hops,
              bcube::kMaxLevels));
        }
      }
    }
  }
}

bool are_whole_rings(const Topology& topology, const Placement& placement) {
  return topology.space().cabled() &&
         std::all_of(placement.dimensions().begin(), placement.dimensions().end(),
                     [&](const GridDimension& dimension) {
                       return dimension.radix == topology.space().radix(dimension.level);
                     });
}

void require_company(std::string_view algorithm, const Placement& placement) {
  if (placement.ranks() > 1) return;
  throw UsageError(
      fmt::format("algorithm {}: one server alone has nobody to exchange with; expected two "
                  "servers or more",
                  algorithm));
}

}  // namespace gradcube::control
