#include "control/plan/algorithms/requirements.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <string>

#include "bcube_forwarding/route.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {
namespace {

std::string too_far(const Plan& plan, ServerId from, ServerId to) {
  const AddressSpace& space = plan.space();
  const std::string who =
      fmt::format("algorithm {} on topology {}: {} sends to {}", plan.algorithm(),
                  plan.topology().spec(), space.text(from), space.text(to));
  if (!space.is_whole()) {
    return fmt::format("{}, and no {} hops or fewer lead there over servers that are not absent",
                       who, bcube::kMaxLevels);
  }
  return fmt::format("{}, {} hops away, and a frame takes {} at most", who,
                     bcube::distance(space, from, to), bcube::kMaxLevels);
}

// Whether a frame goes from any server of the level to any other, over the shorter half of a ring.
bool reaches_all(const AddressSpace& space, unsigned level) {
  return space.is_whole() && space.radix(level) / 2 <= bcube::kMaxLevels;
}

// Whether a frame goes from one to the other, which is another server.
bool is_near(const AddressSpace& space, ServerId from, ServerId to) {
  // A route takes longer to find; beside absent servers it may be longer than the distance.
  if (space.is_whole()) return bcube::distance(space, from, to) <= bcube::kMaxLevels;
  return bcube::shortest_route(space, from, to).size() > 0;
}

// Whether ranks with these digits send to each other in the step.
bool exchange(const PlanStep& step, unsigned digit, unsigned other) {
  if (!step.is_root()) return true;
  return std::min(digit, other) == 0 && std::max(digit, other) < step.participants();
}

}  // namespace

void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why) {
  if (!topology.space().cabled()) return;
  throw MisfitError(
      fmt::format("algorithm {} on topology {}: {}, and here cables join only adjacent servers",
                  algorithm, topology.spec(), why));
}

void require_reach(const Plan& plan) {
  const AddressSpace& space = plan.space();
  if (space.is_whole() && bcube::diameter(space) <= bcube::kMaxLevels) return;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const std::optional<unsigned> level = plan.level(thread, w);
      if (level && reaches_all(space, *level)) continue;
      const PlanStep& step = plan.step(thread, w);
      for (Rank rank = 0; rank < plan.ranks(); ++rank) {
        const unsigned peers = step.is_ring() ? 1 : step.radix - 1;
        for (unsigned r = 1; r <= peers; ++r) {
          const unsigned own = step.digit(rank);
          const unsigned digit = step_pattern::digit_at_offset(step.radix, own, r);
          if (!exchange(step, own, digit)) continue;
          const ServerId from = plan.placement().server(rank);
          const ServerId to = plan.placement().server(step.with_digit(rank, digit));
          if (is_near(space, from, to)) continue;
          throw MisfitError(too_far(plan, from, to));
        }
      }
    }
  }
}

bool are_whole_rings(const Topology& topology, const Placement& placement) {
  return topology.space().cabled() && placement.is_grid() &&
         std::all_of(placement.dimensions().begin(), placement.dimensions().end(),
                     [&](const GridDimension& dimension) {
                       return dimension.radix == topology.space().radix(dimension.level);
                     });
}

void require_grid(std::string_view algorithm, const Topology& topology,
                  const Placement& placement) {
  if (placement.is_grid()) return;
  throw MisfitError(fmt::format("algorithm {}: these {} servers of {} form no grid: {} missing",
                                algorithm, placement.ranks(), topology.spec(),
                                placement.missing_text()));
}

void require_one_step(std::string_view algorithm, std::uint32_t count, std::string_view what) {
  if (count <= kMaxRunnableRadix) return;
  throw MisfitError(fmt::format("algorithm {}: a step has at most {} {}, and here are {}",
                                algorithm, kMaxRunnableRadix, what, count));
}

void require_company(std::string_view algorithm, const Placement& placement) {
  if (placement.ranks() > 1) return;
  throw UsageError(
      fmt::format("algorithm {}: one server alone has nobody to exchange with; expected two "
                  "servers or more",
                  algorithm));
}

}  // namespace gradcube::control
