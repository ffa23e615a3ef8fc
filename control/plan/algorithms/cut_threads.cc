#include "control/plan/algorithms/cut_threads.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace gradcube::control {

Plan cut_threads(Plan plan) {
  const unsigned threads = plan.threads();
  const unsigned lcores = plan.topology().lcores();
  const unsigned most = std::max(kMostCutThreads / threads, 1U);
  const unsigned even = lcores / std::gcd(lcores, threads);
  const unsigned parts = even <= most ? even : std::min((lcores + threads - 1) / threads, most);
  if (parts == 1 || plan.doubles()) return plan;
  std::vector<PlanThread> cut;
  for (unsigned thread = 0; thread < threads; ++thread) {
    cut.insert(cut.end(), parts, plan.thread(thread));
  }
  return Plan(plan.algorithm(), plan.topology(), plan.placement(), std::move(cut), LinkUse::shared);
}

}  // namespace gradcube::control
