#include "control/plan/assignment.h"

#include <algorithm>

#include "control/base/errors.h"

namespace gradcube::control {

Assignment Assignment::all_servers(const Plan& plan, std::span<const Lcore> lcores) {
  if (lcores.empty()) {
    throw SetupError("there is no lcore to run the engines on: give at least one");
  }
  const std::size_t threads = plan.threads();
  const std::size_t groups = std::max<std::size_t>(lcores.size() / threads, 1);
  std::vector<std::vector<unsigned>> result(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    for (std::size_t t = 0; t < threads; ++t) {
      result[g].push_back(lcores[(g * threads + t) % lcores.size()].id);
    }
  }
  return Assignment(std::move(result));
}

unsigned Assignment::engine(ServerId server, unsigned thread) const {
  const std::vector<unsigned>& lcores = lcores_[group(server)];
  unsigned number = 0;
  for (auto at = lcores.begin(); *at != lcores[thread]; ++at) {
    if (std::find(lcores.begin(), at, *at) == at) ++number;  // the first thread of an engine
  }
  return number;
}

std::vector<EngineAssignment> Assignment::engines(ServerId server) const {
  std::vector<EngineAssignment> result;
  const std::vector<unsigned>& lcores = lcores_[group(server)];
  for (unsigned t = 0; t < lcores.size(); ++t) {
    const auto found =
        std::find_if(result.begin(), result.end(),
                     [&](const EngineAssignment& engine) { return engine.lcore == lcores[t]; });
    if (found != result.end()) {
      found->threads.push_back(t);
    } else {
      result.push_back({lcores[t], static_cast<unsigned>(result.size()), {t}});
    }
  }
  return result;
}

}  // namespace gradcube::control
