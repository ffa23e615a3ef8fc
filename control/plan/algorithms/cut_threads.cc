#include "control/plan/algorithms/cut_threads.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace gradcube::control {

Plan cut_threads(Plan plan) {
  const unsigned threads = plan.threads();
  const unsigned wanted = (plan.topology().lcores() + threads - 1) / threads;
  const unsigned parts = std::min(wanted, std::max(kMostCutThreads / threads, 1U));
  if (parts == 1 || plan.doubles()) return plan;
  std::vector<PlanThread> cut;
  for (unsigned thread = 0; thread < threads; ++thread) {
    cut.insert(cut.end(), parts, plan.thread(thread));
  }
  return Plan(plan.algorithm(), plan.topology(), plan.placement(), std::move(cut), LinkUse::shared);
}

}  // namespace gradcube::control
