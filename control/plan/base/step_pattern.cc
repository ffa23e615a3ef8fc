#include "control/plan/base/step_pattern.h"

#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control {

std::string_view pattern_name(Pattern pattern) {
  switch (pattern) {
    case Pattern::mesh:
      return "mesh";
    case Pattern::ring:
      return "ring";
    case Pattern::root:
      return "root";
    case Pattern::doubling:
      break;
  }
  return "doubling";
}

std::optional<Pattern> pattern_named(std::string_view name) {
  for (const Pattern pattern : kPatterns) {
    if (pattern_name(pattern) == name) return pattern;
  }
  return std::nullopt;
}

namespace step_pattern {

void require_runnable(const PlanStep& step) {
  if (step.radix > kMaxRunnableRadix) {
    throw std::invalid_argument(
        fmt::format("a {} of {} ranks cannot be run; expected a radix of at most {}",
                    pattern_name(step.pattern), step.radix, kMaxRunnableRadix));
  }
}

}  // namespace step_pattern
}  // namespace gradcube::control
