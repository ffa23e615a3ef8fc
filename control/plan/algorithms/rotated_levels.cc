#include "control/plan/algorithms/rotated_levels.h"

#include <utility>

namespace gradcube::control {

std::vector<PlanThread> rotated_threads(const Placement& placement,
                                        std::span<const Pattern> patterns) {
  const std::vector<GridDimension>& levels = placement.dimensions();
  std::vector<PlanThread> threads(levels.size());
  for (std::size_t t = 0; t < threads.size(); ++t) {
    for (std::size_t w = 0; w < levels.size(); ++w) {
      const GridDimension& level = levels[(t + w) % levels.size()];
      threads[t].steps.push_back({level.radix, level.stride, patterns[w]});
    }
  }
  return threads;
}

std::vector<PlanThread> counter_rotating_threads(const Placement& placement,
                                                 std::span<const Pattern> patterns) {
  std::vector<PlanThread> threads;
  for (PlanThread& thread : rotated_threads(placement, patterns)) {
    threads.push_back(thread);
    for (PlanStep& step : thread.steps) {
      if (step.is_ring()) step.order = DigitOrder::backwards(step.radix);
    }
    threads.push_back(std::move(thread));
  }
  return threads;
}

}  // namespace gradcube::control
