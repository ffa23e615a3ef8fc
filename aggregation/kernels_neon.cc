// The kernels in AArch64's Advanced SIMD (NEON), 16 bytes per vector. Every AArch64 CPU has it.
#include <arm_neon.h>

#include "aggregation/instruction_sets.h"
#include "aggregation/optimizer_loop.h"
#include "aggregation/reduce_loop.h"
#include "aggregation/scalar_lanes.h"

namespace gradcube::aggregation {
namespace {

uint8x16_t load_128(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
}
uint16x4_t load_64(const std::byte* from) {
  return vreinterpret_u16_u8(vld1_u8(reinterpret_cast<const std::uint8_t*>(from)));
}
void store_128(std::byte* to, uint8x16_t value) {
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to), value);
}
void store_64(std::byte* to, uint16x4_t value) {
  vst1_u8(reinterpret_cast<std::uint8_t*>(to), vreinterpret_u8_u16(value));
}

// min and max are a comparison and a selection, not FMIN: FMIN takes -0 for less than +0.
struct Float32 {
  using Vector = float32x4_t;
  using Divisor = float32x4_t;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return vreinterpretq_f32_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_f32(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_f32(acc, x); }
  static Vector min(Vector acc, Vector x) {
    return vbslq_f32(vbicq_u32(vceqq_f32(acc, acc), vcgeq_f32(x, acc)), x, acc);
  }
  static Vector max(Vector acc, Vector x) {
    return vbslq_f32(vbicq_u32(vceqq_f32(acc, acc), vcleq_f32(x, acc)), x, acc);
  }
  static Vector broadcast(float value) { return vdupq_n_f32(value); }
  static Vector scale(Vector value, Vector by) { return vmulq_f32(value, by); }
  static Divisor divisor(std::uint32_t value) { return broadcast(static_cast<float>(value)); }
  static Vector divide(Vector value, Divisor by) { return vdivq_f32(value, by); }
  static Vector fused(Vector a, Vector b, Vector c) { return vfmaq_f32(c, a, b); }
  static Vector square_root(Vector value) { return vsqrtq_f32(value); }
};

struct Float64 {
  using Vector = float64x2_t;
  using Divisor = float64x2_t;
  static constexpr std::size_t kLanes = 2;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return vreinterpretq_f64_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_f64(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_f64(acc, x); }
  static Vector min(Vector acc, Vector x) {
    return vbslq_f64(vbicq_u64(vceqq_f64(acc, acc), vcgeq_f64(x, acc)), x, acc);
  }
  static Vector max(Vector acc, Vector x) {
    return vbslq_f64(vbicq_u64(vceqq_f64(acc, acc), vcleq_f64(x, acc)), x, acc);
  }
  static Divisor divisor(std::uint32_t value) { return vdupq_n_f64(static_cast<double>(value)); }
  static Vector divide(Vector value, Divisor by) { return vdivq_f64(value, by); }
};

struct Float16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) {
    return vcvt_f32_f16(vreinterpret_f16_u16(load_64(from)));
  }
  static void store(std::byte* to, Vector value) {
    store_64(to, vreinterpret_u16_f16(vcvt_f16_f32(value)));
  }
};

struct Bfloat16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) {
    return vreinterpretq_f32_u32(vshll_n_u16(load_64(from), 16));
  }
  static void store(std::byte* to, Vector value) {
    const uint32x4_t bits = vreinterpretq_u32_f32(value);
    const uint32x4_t upper = vshrq_n_u32(bits, 16);
    const uint32x4_t odd = vandq_u32(upper, vdupq_n_u32(1));
    const uint32x4_t bias = vaddq_u32(odd, vdupq_n_u32(0x7fff));
    const uint32x4_t rounded = vshrq_n_u32(vaddq_u32(bits, bias), 16);
    const uint32x4_t quiet = vorrq_u32(upper, vdupq_n_u32(0x40));
    store_64(to, vmovn_u32(vbslq_u32(vceqq_f32(value, value), rounded, quiet)));
  }
};

struct Int32 {
  using Vector = int32x4_t;
  using Divisor = float64x2_t;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return vreinterpretq_s32_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_s32(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_s32(acc, x); }
  static Vector min(Vector acc, Vector x) { return vminq_s32(acc, x); }
  static Vector max(Vector acc, Vector x) { return vmaxq_s32(acc, x); }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return vandq_s32(veorq_s32(acc, sum), veorq_s32(x, sum));
  }
  static Vector either(Vector a, Vector b) { return vorrq_s32(a, b); }
  static bool any_negative(Vector value) { return vminvq_s32(value) < 0; }
  static Divisor divisor(std::uint32_t value) { return vdupq_n_f64(static_cast<double>(value)); }
  // Exact: if a quotient of 32-bit numbers is not an integer, its distance to the nearest integer
  // is greater than the rounding error of float64.
  static int32x2_t divide_two(int32x2_t value, Divisor by) {
    return vmovn_s64(vcvtq_s64_f64(vdivq_f64(vcvtq_f64_s64(vmovl_s32(value)), by)));
  }
  static Vector divide(Vector value, Divisor by) {
    return vcombine_s32(divide_two(vget_low_s32(value), by), divide_two(vget_high_s32(value), by));
  }
};

struct Int64 {
  using Vector = int64x2_t;
  using Divisor = std::int64_t;
  static constexpr std::size_t kLanes = 2;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return vreinterpretq_s64_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_s64(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_s64(acc, x); }
  static Vector min(Vector acc, Vector x) { return vbslq_s64(vcgtq_s64(acc, x), x, acc); }
  static Vector max(Vector acc, Vector x) { return vbslq_s64(vcgtq_s64(x, acc), x, acc); }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return vandq_s64(veorq_s64(acc, sum), veorq_s64(x, sum));
  }
  static Vector either(Vector a, Vector b) { return vorrq_s64(a, b); }
  static bool any_negative(Vector value) {
    return (vgetq_lane_s64(value, 0) | vgetq_lane_s64(value, 1)) < 0;
  }
  static Divisor divisor(std::uint32_t value) { return value; }
  // There is no vector division of integers.
  static Vector divide(Vector value, Divisor by) {
    return vcombine_s64(vcreate_s64(static_cast<std::uint64_t>(vgetq_lane_s64(value, 0) / by)),
                        vcreate_s64(static_cast<std::uint64_t>(vgetq_lane_s64(value, 1) / by)));
  }
};

struct Int16 {
  using Vector = int16x8_t;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return vreinterpretq_s16_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_s16(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_s16(acc, x); }
  static Vector min(Vector acc, Vector x) { return vminq_s16(acc, x); }
  static Vector max(Vector acc, Vector x) { return vmaxq_s16(acc, x); }
};

struct Int8 {
  using Vector = int8x16_t;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 1;

  static Vector load(const std::byte* from) { return vreinterpretq_s8_u8(load_128(from)); }
  static void store(std::byte* to, Vector value) { store_128(to, vreinterpretq_u8_s8(value)); }
  static Vector sum(Vector acc, Vector x) { return vaddq_s8(acc, x); }
  static Vector min(Vector acc, Vector x) { return vminq_s8(acc, x); }
  static Vector max(Vector acc, Vector x) { return vmaxq_s8(acc, x); }
};

struct Uint8 {
  using Vector = uint8x16_t;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 1;

  static Vector load(const std::byte* from) { return load_128(from); }
  static void store(std::byte* to, Vector value) { store_128(to, value); }
  static Vector sum(Vector acc, Vector x) { return vaddq_u8(acc, x); }
  static Vector min(Vector acc, Vector x) { return vminq_u8(acc, x); }
  static Vector max(Vector acc, Vector x) { return vmaxq_u8(acc, x); }
};

}  // namespace

// Two lanes of 64 bits, each with a shift of its own, gain nothing on whole registers.
constinit const Kernels kNeonKernels =
    make_kernels<Float32, Float64, Float16, Bfloat16, Int32, Int64, Int16, Int8, Uint8, Sum64,
                 Sum128>(InstructionSet::neon, make_optimizers<Float32, Float16, Bfloat16>());

}  // namespace gradcube::aggregation
