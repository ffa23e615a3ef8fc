#include "control/plan/algorithms/requirements.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <fmt/format.h>
#include <string>
#include <vector>

#include "bcube_forwarding/route.h"
#include "control/base/errors.h"
#include "control/plan/algorithms/server_cycle.h"
#include "control/plan/base/step_pattern.h"

namespace gradcube::control {

namespace {

// Whether ring, mesh and ps run on so many: they have one step for all.
bool are_for_one_step(std::uint32_t ranks) { return ranks <= kMaxRunnableRadix; }
static_assert(kMaxRunnableRadix == 256, "algorithms_of_any_number() says so");

// What runs on all servers of a topology of cables.
std::string algorithms_on_cables(const Topology& topology) {
  const bool flat = are_for_one_step(topology.servers());
  if (bcube::diameter(topology.space()) > bcube::kMaxLevels) {
    return flat ? "hips:ring, ring or blueconnect" : "hips:ring or blueconnect";
  }
  return flat ? "hips:ring, ring, blueconnect, or hips:mesh, mesh or ps, where servers relay"
              : "hips:ring, blueconnect, or hips:mesh, where servers relay";
}

}  // namespace

void require_switches(std::string_view algorithm, const Topology& topology, std::string_view why) {
  if (!topology.space().cabled()) return;
  throw UsageError(
      fmt::format("algorithm {} on topology {}: {}, and here cables join only adjacent servers; "
                  "expected {}",
                  algorithm, topology.spec(), why, algorithms_on_cables(topology)));
}

namespace {

bool ring_reaches(const Placement& placement) {
  if (!are_for_one_step(placement.ranks())) return false;
  const std::vector<Rank> cycle = server_cycle(placement);
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const ServerId from = placement.server(cycle[i]);
    const ServerId to = placement.server(cycle[(i + 1) % cycle.size()]);
    if (bcube::shortest_route(placement.space(), from, to).size() == 0) return false;
  }
  return true;
}

std::string too_far(const Plan& plan, ServerId from, ServerId to) {
  const AddressSpace& space = plan.space();
  const std::string who =
      fmt::format("algorithm {} on topology {}: {} sends to {}", plan.algorithm(),
                  plan.topology().spec(), space.text(from), space.text(to));
  if (!space.is_whole()) {
    return fmt::format(
        "{}, and no {} hops or fewer lead there over servers that are not absent; expected {}", who,
        bcube::kMaxLevels,
        ring_reaches(plan.placement()) ? "ring, where peers are close"
                                       : "other absent servers, or a topology with shorter ways");
  }
  return fmt::format(
      "{}, {} hops away, and a frame takes {} at most; expected hips:ring{} or blueconnect:ring "
      "over all servers, where all peers are adjacent",
      who, bcube::distance(space, from, to), bcube::kMaxLevels,
      are_for_one_step(plan.topology().servers()) ? ", ring" : "");
}

}  // namespace

void require_reach(const Plan& plan) {
  const AddressSpace& space = plan.space();
  if (space.is_whole() && bcube::diameter(space) <= bcube::kMaxLevels) return;
  for (unsigned thread = 0; thread < plan.threads(); ++thread) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) {
      const PlanStep& step = plan.step(thread, w);
      for (Rank rank = 0; rank < plan.ranks(); ++rank) {
        const unsigned peers = step.is_ring() ? 1 : step.radix - 1;
        for (unsigned r = 1; r <= peers; ++r) {
          const unsigned digit = step_pattern::digit_at_offset(step.radix, step.digit(rank), r);
          const ServerId from = plan.placement().server(rank);
          const ServerId to = plan.placement().server(step.with_digit(rank, digit));
          if (bcube::shortest_route(space, from, to).size() > 0) continue;
          throw UsageError(too_far(plan, from, to));
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
  throw UsageError(fmt::format(
      "algorithm {}: these {} servers of {} form no grid: {} missing; expected {}{}", algorithm,
      placement.ranks(), topology.spec(), placement.missing_text(),
      algorithms_of_any_number(topology, placement),
      std::has_single_bit(placement.ranks()) ? ", or halving_doubling, as they are a power of two"
                                             : ""));
}

std::string_view algorithms_of_any_number(const Topology& topology, const Placement& placement) {
  const bool cabled = topology.space().cabled();
  const bool flat = are_for_one_step(placement.ranks());
  if (placement.is_grid()) {
    if (!cabled) return "bml or hips:mesh, which run on any number";
    return flat ? "ring or hips:ring, which run on any number"
                : "hips:ring, which runs on any number";
  }
  if (!flat) {
    return cabled ? "256 servers or fewer, and ring, where peers are close"
                  : "256 servers or fewer, and mesh, ring or ps, which run on any of them";
  }
  return cabled ? "ring, where peers are close" : "mesh, ring or ps, which run on any servers";
}

void require_company(std::string_view algorithm, const Placement& placement) {
  if (placement.ranks() > 1) return;
  throw UsageError(
      fmt::format("algorithm {}: one server alone has nobody to exchange with; expected two "
                  "servers or more",
                  algorithm));
}

}  // namespace gradcube::control
