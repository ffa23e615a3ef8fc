// The kernels. reduce() combines several contributions to a segment, element by element. divide()
// turns a sum into an average. A server calls them on the gradients of its 1-hop neighbours in each
// step of the aggregation stage (BML, section 3.2), directly on the receive buffers.
//
// The reference order
// -------------------
// A reduce over the sources s0, s1, ..., s(m-1) computes, for each element i independently,
//
//     result[i] = ((s0[i] op s1[i]) op s2[i]) ... op s(m-1)[i]
//
// in exactly this order. The caller gives the sources in the order of their digits, so every server
// gets the same bits. The kernels of all instruction sets return the bits of these rules:
//
// - float32, float64: IEEE 754 arithmetic of the type, rounded to nearest, ties to even, after each
//   operation. Nothing is contracted into a fused multiply-add.
// - float16, bfloat16: the sources are widened to float32 (exact), reduced in float32, and rounded
//   to the 16-bit type once at the end of the call, to nearest, ties to even (element.h).
// - int32, int64, int16, int8: a sum wraps in two's complement. uint8: it wraps modulo 256.
// - sum64, sum128: the sum of reproducible.h, exact and associative. No other operation.
// - Denormals are ordinary numbers: operands and results are never flushed to zero. The calling
//   thread must keep FTZ and DAZ off and the rounding mode at nearest, as a thread starts.
// - min and max: acc op x is x if x is smaller (larger), else acc. Of equal values, -0 and +0
//   included, the earlier source wins. A NaN propagates: an acc that is NaN stays, otherwise an x
//   that is NaN replaces it. float32 and float64 move bit for bit, NaN payloads included.
// - sum and average: where IEEE 754 gives a NaN the result is a NaN. Its sign and payload are not
//   specified (x86 takes them from the operand that a compiler happens to put first).
// - A NaN result of a 16-bit type is a quiet NaN. Its sign and payload are not specified.
//
// Averages
// --------
// docs/arithmetic.md gives the reasons and the proof. `average` means, for
//
// - float32, float64: reduce() is the sum. divide() after the last step returns the true quotient
//   value / divisor, rounded once to the type (no multiplication by a reciprocal). The divisor is
//   first converted to the type: exact for float64, and for float32 up to 2^24.
// - float16, bfloat16: reduce() returns the mean of its m sources. With 2^s the least power of two
//   that is not less than m, it computes in float32
//
//       ((s0[i] * 2^-s + s1[i] * 2^-s) + s2[i] * 2^-s) ... / (m * 2^-s)
//
//   and rounds to the 16-bit type once at the end of the call. For m <= 256 the products and the
//   divisor are exact, so the result lies between the least and the greatest source and never
//   overflows. No divide() follows.
// - int32, int64: reduce() is the sum, and returns false if any addition overflowed. divide() after
//   the last step truncates toward zero.
// - int16, int8, uint8: nothing (supports()).
//
// Memory. A kernel reads each source once and writes the result once, in one pass. `result` may be
// the memory of one source (any one). It must not overlap a source in any other way. Any alignment
// works; 64 bytes is fastest. Nothing outside `count` elements is read or written. The kernels
// allocate nothing and keep nothing, so any thread may call any kernel at any time.
//
// Errors. The only one is the overflow of an integer average. The caller ensures that supports() is
// true, source_count >= 1 (and <= 256 for an average of a 16-bit type) and divisor >= 1.
#ifndef GRADCUBE_AGGREGATION_KERNELS_H_
#define GRADCUBE_AGGREGATION_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aggregation/element.h"
#include "aggregation/optimizer.h"

namespace gradcube::aggregation {

// Reduces `source_count` >= 1 arrays of `count` elements into `result`. Returns false if an integer
// average overflowed: then the result holds wrapped sums. Otherwise returns true.
using ReduceFunction = bool (*)(void* result, const void* const* sources, std::size_t source_count,
                                std::size_t count) noexcept;

// Divides `count` elements in place by `divisor` >= 1.
using DivideFunction = void (*)(void* values, std::size_t count, std::uint32_t divisor) noexcept;

enum class InstructionSet : std::uint8_t {
  scalar,  // portable C++, compiled for the baseline CPU
  neon,    // Advanced SIMD of AArch64
  avx2,    // AVX2, F16C and FMA
  avx512,  // AVX-512 F, BW, DQ and VL
};

// All of them, those with wider vectors later.
inline constexpr InstructionSet kInstructionSets[] = {InstructionSet::scalar, InstructionSet::neon,
                                                      InstructionSet::avx2, InstructionSet::avx512};

// "scalar", "neon", "avx2", "avx512"; "?" for a value outside the enumeration.
std::string_view instruction_set_name(InstructionSet instruction_set) noexcept;

// The kernels of one instruction set. Tables live as long as the program. `type` and `operation`
// must be valid values.
struct Kernels {
  InstructionSet instruction_set;
  ReduceFunction reduce_functions[kTypeNumbers][kOperations];
  DivideFunction divide_functions[kTypeNumbers];
  Optimizers optimizers;

  // nullptr if !supports(type, operation), and for a type that consists of others (parts_of()).
  ReduceFunction reduce(DataType type, Operation operation) const noexcept {
    return reduce_functions[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
  }
  // nullptr for types whose averages need no division after the last step (float16 and bfloat16),
  // and for those that have no average.
  DivideFunction divide(DataType type) const noexcept {
    return divide_functions[static_cast<std::size_t>(type)];
  }
};

// The kernels of this instruction set. nullptr if this CPU, its operating system or this build does
// not support it. scalar is always available.
const Kernels* kernels_for(InstructionSet instruction_set) noexcept;

// The widest kernels of this machine whose vectors have at most `max_simd_bits` bits (the value of
// rte_vect_get_max_simd_bitwidth()): avx512 from 512 on, avx2 from 256 on, neon from 128 on, else
// scalar.
const Kernels& select_kernels(unsigned max_simd_bits) noexcept;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_KERNELS_H_
