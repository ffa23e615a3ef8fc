// The portable kernels: one element per "vector". The compiler may still use the vectors of the
// baseline CPU. That does not change the result.
#include "aggregation/instruction_sets.h"
#include "aggregation/optimizer_loop.h"
#include "aggregation/reduce_loop.h"
#include "aggregation/scalar_lanes.h"

namespace gradcube::aggregation {
namespace {

template <typename Float>
struct FloatLanes {
  using Vector = Float;
  using Divisor = Float;
  static constexpr std::size_t kLanes = 1;
  static constexpr std::size_t kElementBytes = sizeof(Float);

  static Vector load(const std::byte* from) { return load_element<Float>(from); }
  static void store(std::byte* to, Vector value) { store_element(to, value); }
  static Vector sum(Vector acc, Vector x) { return acc + x; }
  // The bitwise & avoids a branch per element. !(x >= acc) is true for a NaN, as it has to be.
  static Vector min(Vector acc, Vector x) {
    return (static_cast<int>(acc == acc) & static_cast<int>(!(x >= acc))) != 0 ? x : acc;
  }
  static Vector max(Vector acc, Vector x) {
    return (static_cast<int>(acc == acc) & static_cast<int>(!(x <= acc))) != 0 ? x : acc;
  }
  static Divisor divisor(std::uint32_t value) { return static_cast<Float>(value); }
  static Vector divide(Vector value, Divisor by) { return value / by; }
};

// What the optimizers need. A baseline CPU has no fused multiply-add.
struct OptimizerLanes : FloatLanes<float> {
  static Vector broadcast(float value) { return value; }
  static Vector scale(Vector value, Vector by) { return value * by; }
  // The product is exact in float64. The sum is rounded to odd there: towards the neighbour whose
  // last bit is set. Rounding that to float32, which has fewer than half as many bits, rounds as
  // the exact sum would (Boldo and Melquiond, 2008).
  static Vector fused(Vector a, Vector b, Vector c) {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    const double addend = c;
    const double sum = product + addend;
    const double without = sum - product;
    const double error = (product - (sum - without)) + (addend - without);
    std::int64_t bits = 0;
    std::memcpy(&bits, &sum, sizeof(bits));
    // An error that is a NaN, of infinities, is neither above nor below.
    const std::int64_t inexact = static_cast<std::int64_t>(error > 0 || error < 0);
    const std::int64_t outwards = (error > 0) == (sum > 0) ? 1 : -1;
    bits += inexact & ~bits & 1 ? outwards : 0;
    double odd = 0;
    std::memcpy(&odd, &bits, sizeof(odd));
    return static_cast<float>(odd);
  }
  static Vector square_root(Vector value) { return __builtin_sqrtf(value); }
};

template <float (*kWiden)(std::uint16_t) noexcept, std::uint16_t (*kRound)(float) noexcept>
struct SmallFloatLanes : FloatLanes<float> {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return kWiden(load_element<std::uint16_t>(from)); }
  static void store(std::byte* to, Vector value) { store_element(to, kRound(value)); }
  static Vector broadcast(float value) { return value; }
  static Vector scale(Vector value, Vector by) { return value * by; }
};

// The sum is unsigned: it wraps, and overflow is defined.
template <typename Integer, typename Unsigned>
struct IntegerLanes {
  using Vector = Integer;
  using Divisor = std::int64_t;
  static constexpr std::size_t kLanes = 1;
  static constexpr std::size_t kElementBytes = sizeof(Integer);

  static Vector load(const std::byte* from) { return load_element<Integer>(from); }
  static void store(std::byte* to, Vector value) { store_element(to, value); }
  static Vector sum(Vector acc, Vector x) {
    return static_cast<Integer>(static_cast<Unsigned>(acc) + static_cast<Unsigned>(x));
  }
  static Vector min(Vector acc, Vector x) { return x < acc ? x : acc; }
  static Vector max(Vector acc, Vector x) { return x > acc ? x : acc; }
  static Vector overflow(Vector acc, Vector x, Vector sum) { return (acc ^ sum) & (x ^ sum); }
  static Vector either(Vector a, Vector b) { return a | b; }
  static bool any_negative(Vector value) { return value < 0; }
  static Divisor divisor(std::uint32_t value) { return value; }
  static Vector divide(Vector value, Divisor by) { return static_cast<Integer>(value / by); }
};

using Float32 = FloatLanes<float>;
using Float64 = FloatLanes<double>;
using Float16 = SmallFloatLanes<float16_to_float32, float32_to_float16>;
using Bfloat16 = SmallFloatLanes<bfloat16_to_float32, float32_to_bfloat16>;
using Int32 = IntegerLanes<std::int32_t, std::uint32_t>;
using Int64 = IntegerLanes<std::int64_t, std::uint64_t>;
using Int16 = IntegerLanes<std::int16_t, std::uint16_t>;
using Int8 = IntegerLanes<std::int8_t, std::uint8_t>;
using Uint8 = IntegerLanes<std::uint8_t, std::uint8_t>;

}  // namespace

constinit const Kernels kScalarKernels = make_kernels<Float32, Float64, Float16, Bfloat16, Int32,
                                                      Int64, Int16, Int8, Uint8, Sum64, Sum128>(
    InstructionSet::scalar, make_optimizers<OptimizerLanes, Float16, Bfloat16>());

}  // namespace gradcube::aggregation
