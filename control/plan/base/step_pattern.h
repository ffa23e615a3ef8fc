// A step of a plan, and all that depends on its pattern: how many peers a rank has in the step, who
// they are, what must have arrived before it adds, and in which order it adds.
//
// Ranks are numbers 0..N-1 on a logical grid. A rank's digit in a step is (rank / stride) % radix,
// or what a DigitOrder has in its place. The peers of a step are the ranks that differ in this
// digit alone. Streams name a peer by its OFFSET: the peer's digit is the rank's own plus the
// offset, modulo the radix.
//
// A mesh. Each rank sends to every peer, and adds all contributions at once, by ascending digit of
// their ranks.
//
// A ring. Each rank sends to the next digit alone, offset 1, and receives from the one before, in
// radix-1 rounds 0, 1, .... What ends at digit o sets out at digit o+1. In round t of the
// aggregation stage a rank sends the sum that ends at its own digit minus 1+t, and adds itself to
// the one that ends at its own digit minus 2+t (HiPS, Algorithm 2, where t is step-1). So a sum is
// added in the order in which it travels: ((x(o+1) + x(o+2)) + ...) + x(o), one addition at each
// rank. In the broadcast stage results go on in the same direction: in round t a rank sends that of
// its own digit minus t. A ring of two digits is a mesh of two.
//
// A root. All ranks send what they work on to the one with digit 0, which adds it at once, by
// ascending digit of their ranks, and works on alone: the others have no part in the later steps.
// So the step divides nothing. In the broadcast stage the root sends all its results to all. The
// last digits may be bystanders, which neither send nor get anything: in a hub's plan the other
// servers without trainers, each the root of other threads. Such a plan is no all-reduce.
//
// A doubling. Each rank sends all that it works on to every peer, and adds all contributions at
// once, by ascending digit of their ranks. So the step divides nothing, all its ranks end with the
// same sum, and nothing has to come back: a plan with such steps has no others, and no broadcast
// stage (Plan::doubles()).
//
// Plain values and arithmetic, which trusts its arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_BASE_STEP_PATTERN_H_
#define GRADCUBE_CONTROL_PLAN_BASE_STEP_PATTERN_H_

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

namespace gradcube::control {

using Rank = std::uint32_t;

// Of a thread in one stage: 65536 ranks have 16 binary digits.
inline constexpr unsigned kMaxSteps = 16;

// How the ranks of a step reach each other.
enum class Pattern : std::uint8_t {
  mesh,      // each sends to each, in radix-1 rounds
  ring,      // each sends to the next, round by round
  root,      // all send to the one whose digit is 0
  doubling,  // each sends all to each
};
// Those that the steps of one plan may mix.
inline constexpr std::array kPatterns = {Pattern::mesh, Pattern::ring, Pattern::root};
std::string_view pattern_name(Pattern pattern);
// Nothing if none of kPatterns has this name.
std::optional<Pattern> pattern_named(std::string_view name);

// A stream names its peer by an offset of 8 bits. The sum that goes round a ring of 16-bit floats
// is a mean, which a kernel takes of at most 256 values (aggregation/kernels.h).
inline constexpr unsigned kMaxRunnableRadix = 256;

// Another numbering of the digits of a step: a ring goes round by it.
class DigitOrder {
 public:
  // Gives the digit that ranks have by their number another one, a step's. Both are less than
  // kMaxRunnableRadix.
  void set(unsigned digit, unsigned by_number) {
    digit_[by_number] = static_cast<std::uint8_t>(digit);
    by_number_[digit] = static_cast<std::uint8_t>(by_number);
  }
  unsigned digit(unsigned by_number) const { return digit_[by_number]; }
  unsigned by_number(unsigned digit) const { return by_number_[digit]; }

  // Of so many digits by number: 0, n-1, ..., 2, 1. A ring goes the other way round.
  static std::shared_ptr<const DigitOrder> backwards(unsigned radix) {
    auto order = std::make_shared<DigitOrder>();
    for (unsigned digit = 0; digit < radix; ++digit) order->set(digit, (radix - digit) % radix);
    return order;
  }

 private:
  std::array<std::uint8_t, kMaxRunnableRadix> digit_{};
  std::array<std::uint8_t, kMaxRunnableRadix> by_number_{};
};

struct PlanStep {
  unsigned radix = 1;
  std::uint32_t stride = 1;
  Pattern pattern = Pattern::mesh;
  // Null: a rank's digit is that by its number.
  std::shared_ptr<const DigitOrder> order = nullptr;
  unsigned bystanders = 0;  // of the pattern root: the last digits

  unsigned digit_by_number(Rank rank) const { return rank / stride % radix; }
  unsigned digit(Rank rank) const {
    const unsigned by_number = digit_by_number(rank);
    return order == nullptr ? by_number : order->digit(by_number);
  }
  Rank with_digit(Rank rank, unsigned digit_value) const {
    const unsigned by_number = order == nullptr ? digit_value : order->by_number(digit_value);
    return rank + (by_number - digit_by_number(rank)) * stride;
  }
  bool is_ring() const { return pattern == Pattern::ring && radix > 2; }
  bool is_root() const { return pattern == Pattern::root; }
  bool doubles() const { return pattern == Pattern::doubling; }
  // That it divides into what a rank works on.
  unsigned parts() const { return is_root() || doubles() ? 1 : radix; }
  // The digits below have a part in the step.
  unsigned participants() const { return radix - bystanders; }
  bool takes_part(Rank rank) const { return digit(rank) < participants(); }
  // Whether the rank sums something in the step: only then has it a part in the next.
  bool sums(Rank rank) const { return !is_root() || digit(rank) == 0; }
  // That follow each other: what one brings, the next can send on. 1 but in a ring.
  unsigned rounds() const { return is_ring() ? radix - 1 : 1; }
  bool operator==(const PlanStep&) const = default;
};

namespace step_pattern {

// The digit of the peer at offset r of a rank with digit `own`, and back. Offset 0 is the rank.
inline unsigned digit_at_offset(unsigned radix, unsigned own, unsigned r) {
  const unsigned digit = own + r;
  return digit >= radix ? digit - radix : digit;
}
inline unsigned offset_of_digit(unsigned radix, unsigned own, unsigned digit) {
  return digit >= own ? digit - own : digit + radix - own;
}

// In all but a ring, the offset of the i-th summand, i < radix: by ascending digit, so that
// the sum does not depend on who adds it.
inline unsigned summand(unsigned radix, unsigned own, unsigned i) {
  return offset_of_digit(radix, own, i);
}

}  // namespace step_pattern
}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_BASE_STEP_PATTERN_H_
