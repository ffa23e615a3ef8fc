#include "control/plan/base/pieces.h"

#include <fmt/format.h>

namespace gradcube::control {

std::uint32_t PieceSet::count() const {
  if (none) return 0;
  std::uint32_t count = 1;
  for (unsigned i = 0; i < size; ++i) {
    if (digits[i].value == kAnyDigit) count *= digits[i].radix;
  }
  return count;
}

bool PieceSet::contains(PieceId piece) const {
  if (none || piece.thread != thread) return false;
  Rank rest = piece.owner;
  for (unsigned i = 0; i < size; ++i) {
    const std::uint32_t value = rest / digits[i].stride;
    rest -= value * digits[i].stride;
    if (value >= digits[i].radix) return false;
    if (digits[i].value != kAnyDigit && static_cast<unsigned>(digits[i].value) != value) {
      return false;
    }
  }
  return true;
}

std::string PieceSet::text() const {
  if (none) return "-";
  std::string result = fmt::format("<{}", thread);
  for (unsigned i = 0; i < size; ++i) {
    result += digits[i].value == kAnyDigit ? ",*" : fmt::format(",{}", digits[i].value);
  }
  return result + ">";
}

}  // namespace gradcube::control
