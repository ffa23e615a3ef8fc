#include "control/plan/service_order.h"

namespace gradcube::control {

unsigned service_place(const Plan& plan, unsigned thread, Stage stage, unsigned step,
                       unsigned steps) {
  if (stage == Stage::broadcast) return steps;
  const auto level = plan.level(thread, step);
  unsigned first = step;
  while (first > 0 && level.has_value() && plan.level(thread, first - 1) == level) --first;
  return first;
}

}  // namespace gradcube::control
