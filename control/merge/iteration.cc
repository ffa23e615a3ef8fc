#include "control/merge/iteration.h"

#include <algorithm>

namespace gradcube::control::merge {

std::vector<double> ready_seconds(const Iteration& iteration) {
  std::vector<double> ready(iteration.layers.size());
  double now = iteration.forward_seconds;
  for (std::size_t l = ready.size(); l-- > 0;) {
    now += iteration.layers[l].backward_seconds;
    ready[l] = now;
  }
  return ready;
}

double end_seconds(const model::AllReduceCost& cost, std::uint64_t bytes, double ready,
                   double before) {
  return std::max(before, ready) + cost.seconds(static_cast<double>(bytes));
}

}  // namespace gradcube::control::merge
