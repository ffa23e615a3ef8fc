// A step of a plan, and all that depends on its pattern: how many peers a rank has in the step, who
// they are, what must have arrived before it adds, and in which order it adds.
//
// Ranks are numbers 0..N-1 on a logical grid. A rank's digit in a step is (rank / stride) % radix.
// The peers of a step are the ranks that differ in this digit alone. Streams name a peer by its
// OFFSET: the peer's digit is the rank's own plus the offset, modulo the radix.
//
// A plan may name every pattern. The schedule, and so the executor, runs meshes only:
// require_runnable() refuses the others. The functions below it are those of a mesh.
//
// Plain values and arithmetic, which trusts its arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_STEP_PATTERN_H_
#define GRADCUBE_CONTROL_PLAN_STEP_PATTERN_H_

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradcube::control {

using Rank = std::uint32_t;

// Of a thread in one stage: 65536 ranks have 16 binary digits.
inline constexpr unsigned kMaxSteps = 16;

// How the ranks of a step reach each other.
enum class Pattern : std::uint8_t {
  mesh,   // each sends to each, in radix-1 rounds
  ring,   // each sends to the next, round by round
  root,   // all send to the one whose digit is 0
  local,  // they share a server's memory
};
std::string_view pattern_name(Pattern pattern);
// Nothing if no pattern has this name.
std::optional<Pattern> pattern_named(std::string_view name);

struct PlanStep {
  unsigned radix = 1;
  std::uint32_t stride = 1;
  Pattern pattern = Pattern::mesh;

  unsigned digit(Rank rank) const { return rank / stride % radix; }
  Rank with_digit(Rank rank, unsigned digit_value) const {
    return rank + (digit_value - digit(rank)) * stride;
  }
  bool operator==(const PlanStep&) const = default;
};

namespace step_pattern {

// A stream names its peer by an offset of 8 bits.
inline constexpr unsigned kMaxRunnableRadix = 256;

// The patterns that an executor runs.
inline constexpr std::array kRunnable = {Pattern::mesh};

// Throws std::invalid_argument, with a message, for a step that no executor runs.
void require_runnable(const PlanStep& step);

// Peers of each rank. In round r, 1..peers, each rank sends to the peer at offset r.
inline unsigned peers(unsigned radix) { return radix - 1; }

// Contributions that must have arrived before a rank adds them to its own.
inline unsigned arrivals(unsigned radix) { return radix - 1; }

// The digit of the peer at offset r of a rank with digit `own`, and back. Offset 0 is the rank.
inline unsigned digit_at_offset(unsigned radix, unsigned own, unsigned r) {
  const unsigned digit = own + r;
  return digit >= radix ? digit - radix : digit;
}
inline unsigned offset_of_digit(unsigned radix, unsigned own, unsigned digit) {
  return digit >= own ? digit - own : digit + radix - own;
}

// The offset of the i-th summand, i < radix: by ascending digit, so that the sum does not depend on
// who adds it.
inline unsigned summand(unsigned radix, unsigned own, unsigned i) {
  return offset_of_digit(radix, own, i);
}

}  // namespace step_pattern
}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_STEP_PATTERN_H_
