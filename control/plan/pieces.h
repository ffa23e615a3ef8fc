// Gradient pieces: their names, and sets of them.
//
// BML cuts the gradient into (threads x servers) pieces. Piece <e, v(k-1),...,v0> is the part that
// thread e of server [v(k-1),...,v0] aggregates completely (BML, section 3.2). The sets that
// servers exchange are all of one form: some digits of the owner are fixed, the others are free;
// the paper writes <0,*,1>. So a set is k numbers, for any number of pieces.
#ifndef GRADCUBE_CONTROL_PLAN_PIECES_H_
#define GRADCUBE_CONTROL_PLAN_PIECES_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "bcube_forwarding/address.h"

namespace gradcube::control {

struct PieceId {
  unsigned thread = 0;
  bcube::ServerId owner = 0;

  bool operator==(const PieceId&) const = default;
  bool operator<(const PieceId& other) const {
    return std::tie(thread, owner) < std::tie(other.thread, other.owner);
  }
};

struct PieceSet {
  static constexpr int kAnyDigit = -1;

  unsigned thread = 0;
  std::array<int, bcube::kMaxLevels> digits{};  // by level; kAnyDigit: all digits

  std::uint32_t count(const bcube::AddressSpace& space) const;
  bool contains(const bcube::AddressSpace& space, PieceId piece) const;

  // Calls visit(PieceId) for each piece, by ascending number of the owner.
  template <typename Visit>
  void for_each(const bcube::AddressSpace& space, Visit&& visit) const {
    visit_level(space, space.levels(), 0, visit);
  }

  std::string text(const bcube::AddressSpace& space) const;  // "<0,*,1>"

  bool operator==(const PieceSet&) const = default;

 private:
  template <typename Visit>
  void visit_level(const bcube::AddressSpace& space, unsigned level, bcube::ServerId owner,
                   Visit& visit) const {
    if (level == 0) {
      visit(PieceId{thread, owner});
      return;
    }
    const unsigned l = level - 1;
    const unsigned first = digits[l] == kAnyDigit ? 0 : static_cast<unsigned>(digits[l]);
    const unsigned end = digits[l] == kAnyDigit ? space.radix(l) : first + 1;
    for (unsigned digit = first; digit < end; ++digit) {
      visit_level(space, l, owner + digit * space.weight(l), visit);
    }
  }
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_PIECES_H_
