// The topologies that the tests of plans go through.
#ifndef GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_
#define GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Every bcube(n,k) with at most `servers` servers; stars of more than 32 with GRADCUBE_TEST_DEEP
// alone, as they differ from smaller ones in their numbers, and take most of the time.
inline std::vector<Topology> small_cubes(uint32_t servers) {
  const bool deep = std::getenv("GRADCUBE_TEST_DEEP") != nullptr;
  std::vector<Topology> all;
  for (unsigned n = 2; n <= servers; ++n) {
    const bool star_too = deep || n <= 32;
    uint64_t count = star_too ? n : uint64_t{n} * n;
    for (unsigned k = star_too ? 1 : 2; count <= servers && k <= kMaxDimensions; ++k, count *= n) {
      all.push_back(parse_topology("bcube:" + std::to_string(n) + "," + std::to_string(k), "test"));
    }
  }
  return all;
}

// The same, and some whose levels have different radices.
inline std::vector<Topology> small_topologies(uint32_t servers) {
  std::vector<Topology> all = small_cubes(servers);
  for (const char* spec :
       {"bcube:3x2", "bcube:2x5", "bcube:4x3x2", "bcube:3x2x4", "bcube:3x5x2x2", "bcube:4x2x9"}) {
    const Topology topology = parse_topology(spec, "test");
    if (topology.servers() <= servers) all.push_back(topology);
  }
  return all;
}

// Every set of servers of the topology that form a grid, each by ascending number.
inline std::vector<std::vector<ServerId>> all_grids(const Topology& topology) {
  std::vector<std::vector<ServerId>> grids = {{0}};
  for (unsigned level = 0; level < topology.levels(); ++level) {
    std::vector<std::vector<ServerId>> wider;
    for (const std::vector<ServerId>& grid : grids) {
      for (unsigned digits = 1; digits < 1U << topology.space().radix(level); ++digits) {
        std::vector<ServerId>& members = wider.emplace_back();
        for (unsigned digit = 0; digit < topology.space().radix(level); ++digit) {
          if ((digits >> digit & 1U) == 0) continue;
          for (const ServerId server : grid) {
            members.push_back(server + digit * topology.space().weight(level));
          }
        }
      }
    }
    grids = wider;
  }
  return grids;
}

// A plan for all servers whose thread t has a step over level levels[t][w] of the topology each.
inline Plan plan_over_levels(const Topology& topology,
                             const std::vector<std::vector<unsigned>>& levels) {
  std::vector<PlanThread> threads;
  for (const std::vector<unsigned>& order : levels) {
    PlanThread& thread = threads.emplace_back();
    for (const unsigned level : order) {
      thread.steps.push_back({topology.space().radix(level), topology.space().weight(level)});
    }
  }
  return Plan("levels", topology, Placement::all(topology), threads);
}

// The plans of all algorithms that fit these ranks.
inline std::vector<Plan> fitting_plans(const Topology& topology, const Placement& placement) {
  std::vector<Plan> plans;
  for (const std::string& algorithm : algorithm_names()) {
    try {
      plans.push_back(make_plan(algorithm, topology, placement, "test"));
    } catch (const UsageError&) {
      // It does not fit: algorithms_test.cc and the tests of each say what it requires.
    }
  }
  return plans;
}

}  // namespace gradcube::control

#endif  // GRADCUBE_TESTS_UNIT_CONTROL_TOPOLOGIES_H_
