#include "control/plan/algorithms.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <optional>

#include "control/base/errors.h"
#include "control/base/printable.h"
#include "control/plan/bml.h"
#include "control/plan/halving_doubling.h"
#include "control/plan/hips.h"
#include "control/plan/mesh.h"
#include "control/plan/ring.h"
#include "control/plan/step_pattern.h"

namespace gradcube::control {
namespace {

using Make = Plan (*)(const Topology&, const Placement&);

struct Algorithm {
  std::string_view name;
  Make make;  // null: it takes patterns, one for each stage
};

constexpr Algorithm kAlgorithms[] = {{kDefaultAlgorithm, make_bml_plan},
                                     {"halving_doubling", make_halving_doubling_plan},
                                     {"hips", nullptr},
                                     {"mesh", make_mesh_plan},
                                     {"ring", make_ring_plan}};

// "hips:mesh,mesh" is hips, with these parameters.
struct Request {
  std::string_view name;
  std::optional<std::string_view> parameters;
};

Request split(std::string_view algorithm) {
  const std::size_t colon = algorithm.find(':');
  if (colon == std::string_view::npos) return {algorithm, std::nullopt};
  return {algorithm.substr(0, colon), algorithm.substr(colon + 1)};
}

std::vector<std::string_view> runnable_patterns() {
  std::vector<std::string_view> names;
  for (const Pattern pattern : step_pattern::kRunnable) names.push_back(pattern_name(pattern));
  return names;
}

// Of "mesh,mesh". The message of a UsageError begins with `what`.
std::vector<Pattern> read_patterns(std::string_view list, const std::string& what) {
  std::vector<Pattern> patterns;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    const std::string_view name = list.substr(begin, end - begin);
    const std::optional<Pattern> pattern = pattern_named(name);
    const auto& runnable = step_pattern::kRunnable;
    if (!pattern || std::find(runnable.begin(), runnable.end(), *pattern) == runnable.end()) {
      throw UsageError(fmt::format("{}: no stage runs the pattern {}; expected {}", what,
                                   quoted(name), fmt::join(runnable_patterns(), ", ")));
    }
    patterns.push_back(*pattern);
    begin = end + 1;
  }
  return patterns;
}

}  // namespace

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names;
  for (const Algorithm& algorithm : kAlgorithms) {
    if (algorithm.make != nullptr) {
      names.emplace_back(algorithm.name);
      continue;
    }
    for (const std::string_view pattern : runnable_patterns()) {
      names.push_back(fmt::format("{}:{}", algorithm.name, pattern));
    }
  }
  return names;
}

Plan make_plan(std::string_view algorithm, const Topology& topology, const Placement& placement,
               std::string_view where) {
  const std::string what = fmt::format("{} {}", where, quoted(algorithm));
  const Request request = split(algorithm);
  const std::string_view name = request.name;
  const auto* known = std::find_if(std::begin(kAlgorithms), std::end(kAlgorithms),
                                   [&](const Algorithm& each) { return each.name == name; });
  if (known == std::end(kAlgorithms)) {
    throw UsageError(fmt::format("{}: there is no such algorithm; expected {}", what,
                                 fmt::join(algorithm_names(), ", ")));
  }
  if (known->make != nullptr) {
    if (!request.parameters) return known->make(topology, placement);
    throw UsageError(
        fmt::format("{}: {} takes no parameters; expected {} alone", what, name, name));
  }
  if (!request.parameters) {
    throw UsageError(
        fmt::format("{}: expected a pattern for all stages or a list with one for each, for "
                    "example {}:mesh or {}:mesh,mesh",
                    what, name, name));
  }
  return make_hips_plan(std::string(algorithm), topology, placement,
                        read_patterns(*request.parameters, what));
}

Plan make_plan(std::string_view algorithm, const Topology& topology, std::string_view where) {
  return make_plan(algorithm, topology, Placement::all(topology), where);
}

}  // namespace gradcube::control
