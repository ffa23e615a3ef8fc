// Plans on which hubs are tested, with keys, settings and numbers for them.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_PLACES_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_PLACES_H_

#include <array>
#include <cstdint>
#include <numeric>
#include <span>
#include <string>
#include <vector>

#include "aggregation/optimizer_step.h"
#include "control/checkpoint/hub_key.h"
#include "control/hub/aggregator_plan.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::dataplane {

struct Place {
  const char* algorithm;
  const char* topology;

  std::string text() const { return std::string(algorithm) + " on " + topology; }
};

// Meshes, rings, roots, one step and several.
inline constexpr std::array kPlaces = {
    Place{"bml", "bcube:3,2"},
    Place{"bml", "bcube:2,3"},
    Place{"bml", "bcube:4x2x3"},
    Place{"mesh", "star:5"},
    Place{"ps", "star:4"},
    Place{"ps:3 1", "star:4"},
    Place{"ring", "star:4"},
    Place{"ps", "bcube:2,2"},
    Place{"hips:ring", "bcube:3,2"},
    Place{"hips:root", "bcube:3,2"},
    Place{"hips:2xroot", "bcube:3,2"},
    Place{"hips:mesh,ring", "bcube:3,2"},
    Place{"hips:root,mesh", "bcube:3,2"},
    Place{"halving_doubling", "star:4"},
    Place{"blueconnect", "bcube:3,2"},
    Place{"two-level", "bcube:3,2"},
};

// Of a hub whose aggregators are the first servers of a star.
inline control::Plan aggregated_plan(unsigned aggregators, unsigned workers) {
  const control::Topology topology =
      control::parse_topology("star:" + std::to_string(aggregators + workers), "test");
  std::vector<control::ServerId> servers(aggregators + workers);
  std::iota(servers.begin(), servers.end(), 0U);
  const std::span<const control::ServerId> all = servers;
  return control::hub::aggregated(
             topology, control::Placement::of(topology, all.subspan(aggregators), "test"),
             all.first(aggregators), "test")
      .plan(0);
}

inline std::vector<control::HubKey> keys_of(aggregation::DataType type) {
  return {{"conv", 900, type}, {"bias", 3, type}, {"fc", 257, type}, {"norm", 64, type}};
}

inline aggregation::OptimizerSettings settings_of(aggregation::OptimizerRule rule) {
  aggregation::OptimizerSettings settings;
  settings.rule = rule;
  settings.learning_rate = 0.25;
  settings.momentum = rule == aggregation::OptimizerRule::sgd ? 0 : 0.5;
  settings.weight_decay = 0.125;
  return settings;
}

// Whole numbers whose sums have no rounding in any type.
inline float small_number(unsigned rank, unsigned trainer, std::uint32_t key, std::uint64_t element,
                          unsigned round) {
  if (round == 0) return static_cast<float>(element % 7) + static_cast<float>(key);
  return static_cast<float>((rank + 3 * trainer + 5 * element + 7 * key + 11 * round) % 8) - 4;
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_HUB_HUB_PLACES_H_
