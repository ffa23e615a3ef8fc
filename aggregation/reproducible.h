// Sums that do not depend on the order of their additions: the option `reproducible` of a job.
//
// The trainer's library turns each value into a carrier, an element that can be added without any
// rounding, before the daemon sees it. The engines add carriers in whatever order their plan has.
// The library turns the sum back, with one rounding. docs/arithmetic.md has the proof of what
// follows, and the bound of the error.
//
// What carries what, in a job of so many trainers:
//
//   float32, float16, bfloat16: a sum or an average   3 to 16: sum64; more: sum128
//   float64: a sum or an average                      3 to 256: sum128; more: nothing does
//   floats of a job of 1 or 2; min and max of floats  the type itself, without the values whose
//                                                     bits depend on an order (below)
//   int32: an average                                 int64, added
//   int64: an average                                 sum128, added
//   all else                                          the type itself, unchanged
//
// sum64 and sum128 are one integer each. Its lowest bits are an index i; above them is the sum of
// three signed fields, f2 * 2^2s + f1 * 2^s + f0, in two's complement:
//
//              bits of i    s: stride of the fields    w: bits of a piece
//   sum64          5                  19               14
//   sum128         8                  39               22, of float64 30
//
// A float is a multiple of its type's least denormal, an integer. Cut its binary digits into pieces
// of w bits, from the lowest. Piece i is the one with the first digit; f2, f1 and f0 are the pieces
// i, i-1 and i-2, with the number's sign. Nothing of the number lies below them. The sum of two
// carriers has the greater of their indices. The fields of the other move down to it, and those
// that fall out are dropped. Since a field is dropped whole or kept whole, the result is the sum of
// all pieces not below (greatest index) - 2, in any order. A field has room for the sum of all
// trainers.
//
// An infinity or a NaN has the greatest index that there is, so it drops all numbers. Its fields
// count the NaNs, the positive and the negative infinities.
//
// Bits that do not depend on an order: every NaN that comes out is the positive quiet NaN without a
// payload, and every zero that is a sum, a minimum or a maximum is +0.
//
// All functions here are pure. Any thread may call them.
#ifndef GRADCUBE_AGGREGATION_REPRODUCIBLE_H_
#define GRADCUBE_AGGREGATION_REPRODUCIBLE_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "aggregation/element.h"

namespace gradcube::aggregation {

// The most trainers whose sum fits in a field.
inline constexpr std::uint32_t kMostSum64 = 16;
inline constexpr std::uint32_t kMostReproducible = 65536;
inline constexpr std::uint32_t kMostReproducibleFloat64 = 256;

// What the engines add instead.
struct Carrier {
  DataType type{};
  Operation operation{};

  bool operator==(const Carrier&) const = default;
};

struct ReproducibleReduction {
  DataType type{};
  Operation operation{};  // supports(type, operation)
  std::uint32_t ranks = 1;
};

// Nothing if there are too many ranks.
std::optional<Carrier> carrier_of(const ReproducibleReduction& reduction) noexcept;

// Whether values travel as they are: then neither function below is needed.
bool travels_unchanged(const ReproducibleReduction& reduction) noexcept;

// From `count` values to as many carriers, and from their sum to results. carrier_of() has a value.
// Any alignment works. Both arrays may be the same if the carrier has the size of the type.
void to_carriers(const ReproducibleReduction& reduction, const void* values, void* carriers,
                 std::size_t count) noexcept;
void from_carriers(const ReproducibleReduction& reduction, const void* carriers, void* results,
                   std::size_t count) noexcept;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_REPRODUCIBLE_H_
