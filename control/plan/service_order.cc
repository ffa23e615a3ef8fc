#include "control/plan/service_order.h"

#include <optional>

namespace gradcube::control {
namespace {

// The (first) port that a step uses; nothing for one over several levels.
std::optional<unsigned> port_of(const Plan& plan, unsigned thread, unsigned step) {
  const auto level = plan.level(thread, step);
  if (!level) return std::nullopt;
  return plan.topology().dimensions()[*level].port;
}

}  // namespace

unsigned service_place(const Plan& plan, unsigned thread, Stage stage, unsigned step,
                       unsigned steps) {
  const bool root_has_one_port = plan.has_root_step() && plan.topology().ports() == 1;
  if (stage == Stage::broadcast) return root_has_one_port ? 0 : steps;
  const auto port = port_of(plan, thread, step);
  unsigned first = step;
  while (first > 0 && port.has_value() && port_of(plan, thread, first - 1) == port) --first;
  return first;
}

}  // namespace gradcube::control
