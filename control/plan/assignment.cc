#include "control/plan/assignment.h"

#include <algorithm>

#include "control/base/errors.h"

namespace gradcube::control {

Assignment Assignment::all_servers(const Plan& plan, std::span<const Lcore> lcores) {
  if (lcores.empty()) {
    throw SetupError("there is no lcore to run the engines on: give at least one");
  }
  return {plan.threads(), lcores};
}

// Of a server's threads, those as many apart as there are lcores share one.
std::vector<EngineAssignment> Assignment::engines(ServerId server) const {
  std::vector<EngineAssignment> result(std::min<std::size_t>(lcores_.size(), threads_));
  for (unsigned t = 0; t < threads_; ++t) result[t % result.size()].threads.push_back(t);
  for (unsigned queue = 0; queue < result.size(); ++queue) {
    result[queue].lcore = lcore(server, queue);
    result[queue].queue = queue;
  }
  return result;
}

}  // namespace gradcube::control
