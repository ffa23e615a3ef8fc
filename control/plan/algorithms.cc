#include "control/plan/algorithms.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/plan/bml.h"
#include "control/plan/mesh.h"

namespace gradcube::control {
namespace {

struct Algorithm {
  std::string_view name;
  Plan (*make)(const Topology&, const Placement&);
};

constexpr Algorithm kAlgorithms[] = {{kDefaultAlgorithm, make_bml_plan}, {"mesh", make_mesh_plan}};

}  // namespace

std::vector<std::string_view> algorithm_names() {
  std::vector<std::string_view> names;
  for (const Algorithm& algorithm : kAlgorithms) names.push_back(algorithm.name);
  return names;
}

Plan make_plan(std::string_view algorithm, const Topology& topology, const Placement& placement,
               std::string_view where) {
  for (const Algorithm& known : kAlgorithms) {
    if (known.name == algorithm) return known.make(topology, placement);
  }
  throw UsageError(fmt::format("{} {}: there is no such algorithm; expected {}", where,
                               quoted(algorithm), fmt::join(algorithm_names(), ", ")));
}

Plan make_plan(std::string_view algorithm, const Topology& topology, std::string_view where) {
  return make_plan(algorithm, topology, Placement::all(topology), where);
}

}  // namespace gradcube::control
