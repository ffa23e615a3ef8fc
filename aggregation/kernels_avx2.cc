// The kernels in AVX2 and F16C, 32 bytes per vector.
#include <immintrin.h>

#include "aggregation/instruction_sets.h"
#include "aggregation/optimizer_loop.h"
#include "aggregation/reduce_loop.h"

namespace gradcube::aggregation {
namespace {

__m256i load_256(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
__m128i load_128(const std::byte* from) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from));
}
void store_256(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}
void store_128(std::byte* to, __m128i value) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(to), value);
}

// min and max are a comparison and a blend, not VMINPS: VMINPS would lose a NaN in x.
struct Float32 {
  using Vector = __m256;
  using Divisor = __m256;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return _mm256_castsi256_ps(load_256(from)); }
  static void store(std::byte* to, Vector value) { store_256(to, _mm256_castps_si256(value)); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_ps(acc, x); }
  static Vector min(Vector acc, Vector x) {
    return _mm256_blendv_ps(
        acc, x,
        _mm256_and_ps(_mm256_cmp_ps(acc, acc, _CMP_ORD_Q), _mm256_cmp_ps(x, acc, _CMP_NGE_UQ)));
  }
  static Vector max(Vector acc, Vector x) {
    return _mm256_blendv_ps(
        acc, x,
        _mm256_and_ps(_mm256_cmp_ps(acc, acc, _CMP_ORD_Q), _mm256_cmp_ps(x, acc, _CMP_NLE_UQ)));
  }
  static Vector broadcast(float value) { return _mm256_set1_ps(value); }
  static Vector scale(Vector value, Vector by) { return _mm256_mul_ps(value, by); }
  static Divisor divisor(std::uint32_t value) { return broadcast(static_cast<float>(value)); }
  static Vector divide(Vector value, Divisor by) { return _mm256_div_ps(value, by); }
  static Vector fused(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static Vector square_root(Vector value) { return _mm256_sqrt_ps(value); }
};

struct Float64 {
  using Vector = __m256d;
  using Divisor = __m256d;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return _mm256_castsi256_pd(load_256(from)); }
  static void store(std::byte* to, Vector value) { store_256(to, _mm256_castpd_si256(value)); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_pd(acc, x); }
  static Vector min(Vector acc, Vector x) {
    return _mm256_blendv_pd(
        acc, x,
        _mm256_and_pd(_mm256_cmp_pd(acc, acc, _CMP_ORD_Q), _mm256_cmp_pd(x, acc, _CMP_NGE_UQ)));
  }
  static Vector max(Vector acc, Vector x) {
    return _mm256_blendv_pd(
        acc, x,
        _mm256_and_pd(_mm256_cmp_pd(acc, acc, _CMP_ORD_Q), _mm256_cmp_pd(x, acc, _CMP_NLE_UQ)));
  }
  static Divisor divisor(std::uint32_t value) { return _mm256_set1_pd(static_cast<double>(value)); }
  static Vector divide(Vector value, Divisor by) { return _mm256_div_pd(value, by); }
};

struct Float16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return _mm256_cvtph_ps(load_128(from)); }
  static void store(std::byte* to, Vector value) {
    store_128(to, _mm256_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

struct Bfloat16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_128(from)), 16));
  }
  static void store(std::byte* to, Vector value) {
    const __m256i bits = _mm256_castps_si256(value);
    const __m256i upper = _mm256_srli_epi32(bits, 16);
    const __m256i odd = _mm256_and_si256(upper, _mm256_set1_epi32(1));
    const __m256i bias = _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff));
    const __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, bias), 16);
    const __m256i quiet = _mm256_or_si256(upper, _mm256_set1_epi32(0x40));
    const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(value, value, _CMP_UNORD_Q));
    const __m256i wide = _mm256_blendv_epi8(rounded, quiet, nan);
    store_128(to,
              _mm_packus_epi32(_mm256_castsi256_si128(wide), _mm256_extracti128_si256(wide, 1)));
  }
};

struct Int32 {
  using Vector = __m256i;
  using Divisor = __m256d;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return load_256(from); }
  static void store(std::byte* to, Vector value) { store_256(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_epi32(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm256_min_epi32(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm256_max_epi32(acc, x); }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return _mm256_and_si256(_mm256_xor_si256(acc, sum), _mm256_xor_si256(x, sum));
  }
  static Vector either(Vector a, Vector b) { return _mm256_or_si256(a, b); }
  static bool any_negative(Vector value) {
    return _mm256_movemask_ps(_mm256_castsi256_ps(value)) != 0;
  }
  static Divisor divisor(std::uint32_t value) { return _mm256_set1_pd(static_cast<double>(value)); }
  // Exact: if a quotient of 32-bit numbers is not an integer, its distance to the nearest integer
  // is greater than the rounding error of float64.
  static Vector divide(Vector value, Divisor by) {
    const __m256d lower = _mm256_cvtepi32_pd(_mm256_castsi256_si128(value));
    const __m256d upper = _mm256_cvtepi32_pd(_mm256_extracti128_si256(value, 1));
    return _mm256_set_m128i(_mm256_cvttpd_epi32(_mm256_div_pd(upper, by)),
                            _mm256_cvttpd_epi32(_mm256_div_pd(lower, by)));
  }
};

struct Int64 {
  using Vector = __m256i;
  using Divisor = std::int64_t;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return load_256(from); }
  static void store(std::byte* to, Vector value) { store_256(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_epi64(acc, x); }
  static Vector min(Vector acc, Vector x) {
    return _mm256_blendv_epi8(acc, x, _mm256_cmpgt_epi64(acc, x));
  }
  static Vector max(Vector acc, Vector x) {
    return _mm256_blendv_epi8(acc, x, _mm256_cmpgt_epi64(x, acc));
  }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return _mm256_and_si256(_mm256_xor_si256(acc, sum), _mm256_xor_si256(x, sum));
  }
  static Vector either(Vector a, Vector b) { return _mm256_or_si256(a, b); }
  static bool any_negative(Vector value) {
    return _mm256_movemask_pd(_mm256_castsi256_pd(value)) != 0;
  }
  static Divisor divisor(std::uint32_t value) { return value; }
  // There is no vector division of 64-bit integers.
  static Vector divide(Vector value, Divisor by) {
    alignas(32) std::int64_t lanes[kLanes];
    _mm256_store_si256(reinterpret_cast<__m256i*>(lanes), value);
    for (std::int64_t& lane : lanes) lane /= by;
    return _mm256_load_si256(reinterpret_cast<const __m256i*>(lanes));
  }
};

struct Int16 {
  using Vector = __m256i;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return load_256(from); }
  static void store(std::byte* to, Vector value) { store_256(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_epi16(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm256_min_epi16(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm256_max_epi16(acc, x); }
};

struct Int8 {
  using Vector = __m256i;
  static constexpr std::size_t kLanes = 32;
  static constexpr std::size_t kElementBytes = 1;

  static Vector load(const std::byte* from) { return load_256(from); }
  static void store(std::byte* to, Vector value) { store_256(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm256_add_epi8(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm256_min_epi8(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm256_max_epi8(acc, x); }
};

struct Uint8 : Int8 {
  static Vector min(Vector acc, Vector x) { return _mm256_min_epu8(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm256_max_epu8(acc, x); }
};

// Of reproducible.h: a field per 19 bits above the 5 bits of the index.
struct Sum64 {
  using Vector = __m256i;
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return load_256(from); }
  static void store(std::byte* to, Vector value) { store_256(to, value); }
  // As in the scalar kernels. AVX2 has no arithmetic shift of 64 bits: the sign is moved away first
  // and its shifted place subtracted.
  static Vector aligned(Vector value, Vector own, Vector index) {
    const __m256i steps = _mm256_min_epu32(_mm256_sub_epi64(index, own), _mm256_set1_epi64x(3));
    const __m256i shift = _mm256_mul_epu32(steps, _mm256_set1_epi64x(19));
    const __m256i half = _mm256_sllv_epi64(_mm256_set1_epi64x(1 << 4), shift);
    const __m256i biased = _mm256_add_epi64(_mm256_sub_epi64(value, own), half);
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    const __m256i shifted = _mm256_sub_epi64(
        _mm256_srlv_epi64(_mm256_xor_si256(biased, sign), shift), _mm256_srlv_epi64(sign, shift));
    return _mm256_andnot_si256(_mm256_set1_epi64x(31), shifted);
  }
  static Vector sum(Vector acc, Vector x) {
    const __m256i one = _mm256_and_si256(acc, _mm256_set1_epi64x(31));
    const __m256i other = _mm256_and_si256(x, _mm256_set1_epi64x(31));
    const __m256i index = _mm256_max_epu32(one, other);
    const __m256i fields = _mm256_add_epi64(aligned(acc, one, index), aligned(x, other, index));
    return _mm256_or_si256(fields, index);
  }
};

// A field per 39 bits above the 8 bits of the index. The low and the high halves of four elements.
struct Sum128 {
  struct Vector {
    __m256i low, high;
  };
  static constexpr std::size_t kLanes = 4;
  static constexpr std::size_t kElementBytes = 16;

  static Vector load(const std::byte* from) {
    const __m256i first = load_256(from);
    const __m256i second = load_256(from + 32);
    return {_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)};
  }
  static void store(std::byte* to, Vector value) {
    store_256(to, _mm256_unpacklo_epi64(value.low, value.high));
    store_256(to + 32, _mm256_unpackhi_epi64(value.low, value.high));
  }
  static Vector added(Vector a, Vector b) {
    const __m256i sign = _mm256_set1_epi64x(INT64_MIN);
    const __m256i low = _mm256_add_epi64(a.low, b.low);
    const __m256i minus_carry =
        _mm256_cmpgt_epi64(_mm256_xor_si256(a.low, sign), _mm256_xor_si256(low, sign));
    return {low, _mm256_sub_epi64(_mm256_add_epi64(a.high, b.high), minus_carry)};
  }
  // A shift by 64 or more, also by a negative number, yields zeros.
  static Vector shifted(Vector value, __m256i by) {
    const __m256i negative = _mm256_cmpgt_epi64(_mm256_setzero_si256(), value.high);
    const __m256i left = _mm256_sub_epi64(_mm256_set1_epi64x(64), by);
    const __m256i beyond = _mm256_sub_epi64(by, _mm256_set1_epi64x(64));
    const __m256i sign_left = _mm256_sub_epi64(_mm256_set1_epi64x(128), by);
    const __m256i from_low = _mm256_srlv_epi64(value.low, by);
    const __m256i from_high =
        _mm256_or_si256(_mm256_sllv_epi64(value.high, left), _mm256_srlv_epi64(value.high, beyond));
    const __m256i low = _mm256_or_si256(_mm256_or_si256(from_low, from_high),
                                        _mm256_sllv_epi64(negative, sign_left));
    const __m256i all_sign =
        _mm256_and_si256(negative, _mm256_cmpgt_epi64(by, _mm256_set1_epi64x(63)));
    const __m256i high =
        _mm256_or_si256(_mm256_or_si256(_mm256_srlv_epi64(value.high, by), all_sign),
                        _mm256_sllv_epi64(negative, left));
    return {low, high};
  }
  static Vector aligned(Vector value, __m256i own, __m256i index) {
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i steps = _mm256_min_epu32(_mm256_sub_epi64(index, own), _mm256_set1_epi64x(3));
    const __m256i shift = _mm256_mul_epu32(steps, _mm256_set1_epi64x(39));
    const Vector half = {
        _mm256_sllv_epi64(one, _mm256_add_epi64(shift, _mm256_set1_epi64x(7))),
        _mm256_sllv_epi64(one, _mm256_sub_epi64(shift, _mm256_set1_epi64x(64 - 7)))};
    Vector fields = {_mm256_sub_epi64(value.low, own), value.high};
    fields = shifted(added(fields, half), shift);
    return {_mm256_andnot_si256(_mm256_set1_epi64x(255), fields.low), fields.high};
  }
  static Vector sum(Vector acc, Vector x) {
    const __m256i one = _mm256_and_si256(acc.low, _mm256_set1_epi64x(255));
    const __m256i other = _mm256_and_si256(x.low, _mm256_set1_epi64x(255));
    const __m256i index = _mm256_max_epu32(one, other);
    const Vector fields = added(aligned(acc, one, index), aligned(x, other, index));
    return {_mm256_or_si256(fields.low, index), fields.high};
  }
};

}  // namespace

constinit const Kernels kAvx2Kernels =
    make_kernels<Float32, Float64, Float16, Bfloat16, Int32, Int64, Int16, Int8, Uint8, Sum64,
                 Sum128>(InstructionSet::avx2, make_optimizers<Float32, Float16, Bfloat16>());

}  // namespace gradcube::aggregation
