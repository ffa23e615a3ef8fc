#include "control/plan/base/step_pattern.h"

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

}  // namespace gradcube::control
