#include "control/plan/pieces.h"

#include <fmt/format.h>

namespace gradcube::control {

std::uint32_t PieceSet::count(const bcube::AddressSpace& space) const {
  std::uint32_t count = 1;
  for (unsigned level = 0; level < space.levels(); ++level) {
    if (digits[level] == kAnyDigit) count *= space.radix(level);
  }
  return count;
}

bool PieceSet::contains(const bcube::AddressSpace& space, PieceId piece) const {
  if (piece.thread != thread || !space.contains(piece.owner)) return false;
  for (unsigned level = 0; level < space.levels(); ++level) {
    if (digits[level] == kAnyDigit) continue;
    if (static_cast<unsigned>(digits[level]) != space.digit(piece.owner, level)) return false;
  }
  return true;
}

std::string PieceSet::text(const bcube::AddressSpace& space) const {
  std::string result = fmt::format("<{}", thread);
  for (unsigned level = space.levels(); level-- > 0;) {
    result += digits[level] == kAnyDigit ? ",*" : fmt::format(",{}", digits[level]);
  }
  return result + ">";
}

}  // namespace gradcube::control
