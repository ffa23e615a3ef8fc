// The kernels: element-wise reducing of several contributions to a segment, and the division that
// makes a sum an average. They are what a server does to the gradients of its 1-hop neighbours in a
// step of the aggregation stage (BML, section 3.2), straight out of the receive buffers.
//
// The one written reference order
// -------------------------------
// A reduce over the sources s0, s1, ..., s(m-1) yields, for every element i on its own,
//
//     result[i] = ((s0[i] op s1[i]) op s2[i]) ... op s(m-1)[i]
//
// in exactly this order; the caller gives the sources in the order of their digits, and so every
// server gets the same bits. All forms (scalar, AVX2, AVX-512) yield the same bits as this:
//
// - float32, float64: IEEE 754 arithmetic of the type, rounded to nearest, ties to even, after each
//   operation; nothing is contracted into a fused multiply-add.
// - float16, bfloat16: the sources are widened to float32 (exact), reduced there, and rounded to the
//   16-bit type once at the end of the call, to nearest, ties to even (element.h).
// - int32, int64: the sum wraps in two's complement.
// - Denormals are numbers like others: operands and results are never flushed to zero. The calling
//   thread must leave FTZ and DAZ off and the rounding mode at nearest, as a thread starts.
// - min and max: acc op x is x if x is smaller (larger), else acc. So of equal values, -0 and +0
//   included, the earlier source's stays. A NaN goes through: an acc that is NaN stays, else an x
//   that is NaN replaces it. float32 and float64 move bit for bit, NaN payloads included.
// - sum and average: where IEEE 754 yields a NaN the result is a NaN; its sign and payload are not
//   specified (x86 takes them from the operand a compiler happens to put first).
// - A NaN result of a 16-bit type is a quiet NaN; sign and payload are not specified.
// - average reduces as sum; divide() then yields the true quotient value / divisor, rounded once to
//   the type (no multiplication by a reciprocal). The divisor is first converted to the type, exact
//   for float64 and the integers, and for float32 up to 2^24; 16-bit floats divide in float32 and
//   round to the type; integers truncate toward zero.
//
// Memory. A kernel reads each source once and writes the result once, in one pass. `result` may be
// the very memory of one source (any one); it must not overlap a source otherwise. Any alignment
// works; 64 bytes is fastest. Nothing outside `count` elements is read or written. Nothing is
// allocated, kept or owned, so any thread may call any kernel at any time.
//
// Errors. None: the caller has checked that source_count >= 1 and divisor >= 1.
#ifndef GRADCUBE_AGGREGATION_KERNELS_H_
#define GRADCUBE_AGGREGATION_KERNELS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "aggregation/element.h"

namespace gradcube::aggregation {

// Reduces `source_count` >= 1 arrays of `count` elements into `result`.
using ReduceFunction = void (*)(void* result, const void* const* sources, std::size_t source_count,
                                std::size_t count) noexcept;

// Divides `count` elements in place by `divisor` >= 1.
using DivideFunction = void (*)(void* values, std::size_t count, std::uint32_t divisor) noexcept;

enum class InstructionSet : std::uint8_t {
  scalar,  // portable C++; what the compiler makes of it for the baseline CPU
  avx2,    // AVX2 and F16C
  avx512,  // AVX-512 F, BW, DQ and VL
};

// "scalar", "avx2", "avx512"; "?" for a value outside the enumeration.
std::string_view instruction_set_name(InstructionSet instruction_set) noexcept;

// The kernels of one instruction set. Tables live as long as the program; a session looks its
// functions up once, when a collective starts. `type` and `operation` must be valid values.
struct Kernels {
  InstructionSet instruction_set;
  ReduceFunction reduce_functions[kDataTypes][kOperations];
  DivideFunction divide_functions[kDataTypes];

  ReduceFunction reduce(DataType type, Operation operation) const noexcept {
    return reduce_functions[static_cast<std::size_t>(type)][static_cast<std::size_t>(operation)];
  }
  DivideFunction divide(DataType type) const noexcept {
    return divide_functions[static_cast<std::size_t>(type)];
  }
};

// The kernels of this instruction set, or nullptr if this CPU, its operating system or this build
// lacks it. scalar is always there.
const Kernels* kernels_for(InstructionSet instruction_set) noexcept;

// The widest kernels this machine has among those whose vectors have at most `max_simd_bits` bits
// (what rte_vect_get_max_simd_bitwidth() returns): avx512 from 512 on, avx2 from 256 on, else
// scalar.
const Kernels& select_kernels(unsigned max_simd_bits) noexcept;

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_KERNELS_H_
