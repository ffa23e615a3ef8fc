// Gradient pieces: their names, and sets of them.
//
// A plan cuts the gradient into (threads x ranks) pieces. Piece <e, v(k-1),...,v0> is the part that
// thread e of the rank with these digits aggregates completely: the rank owns it (BML, section
// 3.2). The sets that ranks exchange are all of one form: some digits of the owner are fixed, the
// others are free; the paper writes <0,*,1>. So a set is a few numbers, for any number of pieces.
//
// The digits are those of the thread's steps. In BML's plan for all servers of a topology they are
// the digits of the owner's address.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_PIECES_H_
#define GRADCUBE_CONTROL_PLAN_BASE_PIECES_H_

#include <array>
#include <cstdint>
#include <string>
#include <tuple>

#include "control/plan/base/step_pattern.h"

namespace gradcube::control {

struct PieceId {
  unsigned thread = 0;
  Rank owner = 0;

  bool operator==(const PieceId&) const = default;
  bool operator<(const PieceId& other) const {
    return std::tie(thread, owner) < std::tie(other.thread, other.owner);
  }
};

struct PieceSet {
  static constexpr int kAnyDigit = -1;

  struct Digit {
    std::uint32_t stride = 1;
    unsigned radix = 1;
    int value = kAnyDigit;  // of the owner; kAnyDigit: all digits

    bool operator==(const Digit&) const = default;
  };

  unsigned thread = 0;
  bool none = false;                      // the set is empty, whatever the digits are
  unsigned size = 0;                      // of `digits`
  std::array<Digit, kMaxSteps> digits{};  // the most significant first

  std::uint32_t count() const;
  bool contains(PieceId piece) const;

  // Calls visit(PieceId) for each piece, by ascending number of the owner.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    if (!none) visit_digit(0, 0, visit);
  }

  std::string text() const;  // "<0,*,1>"; "-" if there is none

  bool operator==(const PieceSet&) const = default;

 private:
  template <typename Visit>
  void visit_digit(unsigned index, Rank owner, Visit& visit) const {
    if (index == size) {
      visit(PieceId{thread, owner});
      return;
    }
    const Digit& here = digits[index];
    const unsigned first = here.value == kAnyDigit ? 0 : static_cast<unsigned>(here.value);
    const unsigned end = here.value == kAnyDigit ? here.radix : first + 1;
    for (unsigned value = first; value < end; ++value) {
      visit_digit(index + 1, owner + value * here.stride, visit);
    }
  }
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_PIECES_H_
