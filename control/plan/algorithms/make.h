// The plan of each algorithm. The comment above the function in make.cc says what the plan is; that
// of BlueConnect, which is long, is in blueconnect.cc.
//
// `name` is the plan's, as it was asked for: "hips:mesh". All throw a UsageError for servers that
// they do not run on, a single one among them: a MisfitError (requirements.h) where others may.
#ifndef GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_
#define GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/step_pattern.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {

// Needs a switch in every dimension.
Plan make_bml_plan(const Topology& topology, const Placement& placement);

// `parameters` stand behind the colon of the name: factors, patterns or both. Throws a UsageError,
// which begins with `what`, for anything else; and one where the product of the factors is not the
// number of ranks, the patterns are not as many as the factors, a factor to be halved is no power
// of two or a ring has more than kMaxRunnableRadix ranks.
Plan make_blueconnect_plan(const std::string& name, const Topology& topology,
                           const Placement& placement, std::optional<std::string_view> parameters,
                           const std::string& what);

// Needs a power of two of ranks.
Plan make_halving_doubling_plan(const Topology& topology, const Placement& placement);

struct StagePattern {
  Pattern pattern{};
  unsigned roots = 1;  // of each group, if it is the pattern root
};

// patterns: one for all stages, or one for each. Throws a UsageError for another number of them,
// and for more roots than a group has servers; a MisfitError for more than kMostCutThreads threads.
Plan make_hips_plan(const std::string& name, const Topology& topology, const Placement& placement,
                    std::span<const StagePattern> patterns);

// Needs at most 256 ranks.
Plan make_mesh_plan(const Topology& topology, const Placement& placement);

// Whether the roots of a parameter server's plan contribute to each other's sums, as all servers
// do, or have no trainers, as a hub's aggregators.
enum class RootsPlace { among_the_trainers, beside_the_trainers };

// Of a root there, in the parameter server's plan: on a star one for each of its ports.
unsigned root_threads(const Topology& topology, ServerId server);

// servers: the roots; throws a UsageError for none, and for one twice. A root's own contribution is
// added first, and then those of the others by ascending rank. Needs at most 256 ranks, one of them
// at each root, and at most kMostCutThreads threads.
Plan make_parameter_server_plan(const std::string& name, const Topology& topology,
                                const Placement& placement, std::span<const ServerId> servers,
                                RootsPlace place = RootsPlace::among_the_trainers);

// Needs ranks that form a grid, under switches.
Plan make_recursive_doubling_plan(const Topology& topology, const Placement& placement);

// On a torus there are two threads, which go round in opposite directions. Needs at most 256 ranks.
Plan make_ring_plan(const Topology& topology, const Placement& placement);

// Needs a switch in every dimension, several digits of the servers at two levels or more, and at
// most 256 groups unless they are a power of two.
Plan make_two_level_plan(const Topology& topology, const Placement& placement);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_ALGORITHMS_MAKE_H_
