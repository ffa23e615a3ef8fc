// The kernels in AVX-512, 64 bytes per vector. They do not use AVX512_BF16, which flushes
// denormals, or AVX512-FP16, which rounds after every addition.
#include <immintrin.h>

#include "aggregation/instruction_sets.h"
#include "aggregation/optimizer_loop.h"
#include "aggregation/reduce_loop.h"

namespace gradcube::aggregation {
namespace {

__m256i load_256(const std::byte* from) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
}
void store_256(std::byte* to, __m256i value) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), value);
}

// min and max are comparisons and a blend, not VMINPS: VMINPS would lose a NaN in x.
struct Float32 {
  using Vector = __m512;
  using Divisor = __m512;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return _mm512_loadu_ps(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_ps(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_ps(acc, x); }
  static Vector min(Vector acc, Vector x) {
    const __mmask16 ordered = _mm512_cmp_ps_mask(acc, acc, _CMP_ORD_Q);
    return _mm512_mask_mov_ps(acc, _mm512_mask_cmp_ps_mask(ordered, x, acc, _CMP_NGE_UQ), x);
  }
  static Vector max(Vector acc, Vector x) {
    const __mmask16 ordered = _mm512_cmp_ps_mask(acc, acc, _CMP_ORD_Q);
    return _mm512_mask_mov_ps(acc, _mm512_mask_cmp_ps_mask(ordered, x, acc, _CMP_NLE_UQ), x);
  }
  static Vector broadcast(float value) { return _mm512_set1_ps(value); }
  static Vector scale(Vector value, Vector by) { return _mm512_mul_ps(value, by); }
  static Divisor divisor(std::uint32_t value) { return broadcast(static_cast<float>(value)); }
  static Vector divide(Vector value, Divisor by) { return _mm512_div_ps(value, by); }
  static Vector fused(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static Vector square_root(Vector value) { return _mm512_sqrt_ps(value); }
};

struct Float64 {
  using Vector = __m512d;
  using Divisor = __m512d;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return _mm512_loadu_pd(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_pd(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_pd(acc, x); }
  static Vector min(Vector acc, Vector x) {
    const __mmask8 ordered = _mm512_cmp_pd_mask(acc, acc, _CMP_ORD_Q);
    return _mm512_mask_mov_pd(acc, _mm512_mask_cmp_pd_mask(ordered, x, acc, _CMP_NGE_UQ), x);
  }
  static Vector max(Vector acc, Vector x) {
    const __mmask8 ordered = _mm512_cmp_pd_mask(acc, acc, _CMP_ORD_Q);
    return _mm512_mask_mov_pd(acc, _mm512_mask_cmp_pd_mask(ordered, x, acc, _CMP_NLE_UQ), x);
  }
  static Divisor divisor(std::uint32_t value) { return _mm512_set1_pd(static_cast<double>(value)); }
  static Vector divide(Vector value, Divisor by) { return _mm512_div_pd(value, by); }
};

struct Float16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return _mm512_cvtph_ps(load_256(from)); }
  static void store(std::byte* to, Vector value) {
    store_256(to, _mm512_cvtps_ph(value, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
  }
};

struct Bfloat16 : Float32 {
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_256(from)), 16));
  }
  static void store(std::byte* to, Vector value) {
    const __m512i bits = _mm512_castps_si512(value);
    const __m512i upper = _mm512_srli_epi32(bits, 16);
    const __m512i odd = _mm512_and_si512(upper, _mm512_set1_epi32(1));
    const __m512i bias = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff));
    const __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, bias), 16);
    const __mmask16 nan = _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
    store_256(to, _mm512_cvtepi32_epi16(
                      _mm512_mask_or_epi32(rounded, nan, upper, _mm512_set1_epi32(0x40))));
  }
};

struct Int32 {
  using Vector = __m512i;
  using Divisor = __m512d;
  static constexpr std::size_t kLanes = 16;
  static constexpr std::size_t kElementBytes = 4;

  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_epi32(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm512_min_epi32(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm512_max_epi32(acc, x); }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return _mm512_and_si512(_mm512_xor_si512(acc, sum), _mm512_xor_si512(x, sum));
  }
  static Vector either(Vector a, Vector b) { return _mm512_or_si512(a, b); }
  static bool any_negative(Vector value) { return _mm512_movepi32_mask(value) != 0; }
  static Divisor divisor(std::uint32_t value) { return _mm512_set1_pd(static_cast<double>(value)); }
  // Exact: if a quotient of 32-bit numbers is not an integer, its distance to the nearest integer
  // is greater than the rounding error of float64.
  static Vector divide(Vector value, Divisor by) {
    const __m512d lower = _mm512_cvtepi32_pd(_mm512_castsi512_si256(value));
    const __m512d upper = _mm512_cvtepi32_pd(_mm512_extracti64x4_epi64(value, 1));
    return _mm512_inserti64x4(_mm512_castsi256_si512(_mm512_cvttpd_epi32(_mm512_div_pd(lower, by))),
                              _mm512_cvttpd_epi32(_mm512_div_pd(upper, by)), 1);
  }
};

struct Int64 {
  using Vector = __m512i;
  using Divisor = std::int64_t;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_epi64(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm512_min_epi64(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm512_max_epi64(acc, x); }
  static Vector overflow(Vector acc, Vector x, Vector sum) {
    return _mm512_and_si512(_mm512_xor_si512(acc, sum), _mm512_xor_si512(x, sum));
  }
  static Vector either(Vector a, Vector b) { return _mm512_or_si512(a, b); }
  static bool any_negative(Vector value) { return _mm512_movepi64_mask(value) != 0; }
  static Divisor divisor(std::uint32_t value) { return value; }
  // There is no vector division of 64-bit integers.
  static Vector divide(Vector value, Divisor by) {
    alignas(64) std::int64_t lanes[kLanes];
    _mm512_store_si512(lanes, value);
    for (std::int64_t& lane : lanes) lane /= by;
    return _mm512_load_si512(lanes);
  }
};

struct Int16 {
  using Vector = __m512i;
  static constexpr std::size_t kLanes = 32;
  static constexpr std::size_t kElementBytes = 2;

  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_epi16(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm512_min_epi16(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm512_max_epi16(acc, x); }
};

struct Int8 {
  using Vector = __m512i;
  static constexpr std::size_t kLanes = 64;
  static constexpr std::size_t kElementBytes = 1;

  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  static Vector sum(Vector acc, Vector x) { return _mm512_add_epi8(acc, x); }
  static Vector min(Vector acc, Vector x) { return _mm512_min_epi8(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm512_max_epi8(acc, x); }
};

struct Uint8 : Int8 {
  static Vector min(Vector acc, Vector x) { return _mm512_min_epu8(acc, x); }
  static Vector max(Vector acc, Vector x) { return _mm512_max_epu8(acc, x); }
};

// Of reproducible.h: a field per 19 bits above the 5 bits of the index.
struct Sum64 {
  using Vector = __m512i;
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 8;

  static Vector load(const std::byte* from) { return _mm512_loadu_si512(from); }
  static void store(std::byte* to, Vector value) { _mm512_storeu_si512(to, value); }
  // As in the scalar kernels.
  static Vector aligned(Vector value, Vector own, Vector index) {
    const __m512i steps = _mm512_min_epu32(_mm512_sub_epi64(index, own), _mm512_set1_epi64(3));
    const __m512i shift = _mm512_mul_epu32(steps, _mm512_set1_epi64(19));
    const __m512i half = _mm512_sllv_epi64(_mm512_set1_epi64(1 << 4), shift);
    const __m512i biased = _mm512_add_epi64(_mm512_sub_epi64(value, own), half);
    return _mm512_andnot_si512(_mm512_set1_epi64(31), _mm512_srav_epi64(biased, shift));
  }
  static Vector sum(Vector acc, Vector x) {
    const __m512i one = _mm512_and_si512(acc, _mm512_set1_epi64(31));
    const __m512i other = _mm512_and_si512(x, _mm512_set1_epi64(31));
    const __m512i index = _mm512_max_epu32(one, other);
    const __m512i fields = _mm512_add_epi64(aligned(acc, one, index), aligned(x, other, index));
    return _mm512_or_si512(fields, index);
  }
};

// A field per 39 bits above the 8 bits of the index. The low and the high halves of eight elements.
struct Sum128 {
  struct Vector {
    __m512i low, high;
  };
  static constexpr std::size_t kLanes = 8;
  static constexpr std::size_t kElementBytes = 16;

  static Vector load(const std::byte* from) {
    const __m512i first = _mm512_loadu_si512(from);
    const __m512i second = _mm512_loadu_si512(from + 64);
    return {_mm512_unpacklo_epi64(first, second), _mm512_unpackhi_epi64(first, second)};
  }
  static void store(std::byte* to, Vector value) {
    _mm512_storeu_si512(to, _mm512_unpacklo_epi64(value.low, value.high));
    _mm512_storeu_si512(to + 64, _mm512_unpackhi_epi64(value.low, value.high));
  }
  static Vector added(Vector a, Vector b) {
    const __m512i low = _mm512_add_epi64(a.low, b.low);
    const __m512i high = _mm512_add_epi64(a.high, b.high);
    const __mmask8 carry = _mm512_cmplt_epu64_mask(low, a.low);
    return {low, _mm512_mask_add_epi64(high, carry, high, _mm512_set1_epi64(1))};
  }
  // A logical shift by 64 or more, also by a negative number, yields zeros.
  static Vector shifted(Vector value, __m512i by) {
    const __m512i left = _mm512_sub_epi64(_mm512_set1_epi64(64), by);
    const __m512i beyond = _mm512_sub_epi64(by, _mm512_set1_epi64(64));
    const __m512i low =
        _mm512_or_si512(_mm512_srlv_epi64(value.low, by), _mm512_sllv_epi64(value.high, left));
    const __mmask8 far = _mm512_cmpgt_epi64_mask(by, _mm512_set1_epi64(63));
    return {_mm512_mask_srav_epi64(low, far, value.high, beyond),
            _mm512_srav_epi64(value.high, by)};
  }
  static Vector aligned(Vector value, __m512i own, __m512i index) {
    const __m512i one = _mm512_set1_epi64(1);
    const __m512i steps = _mm512_min_epu32(_mm512_sub_epi64(index, own), _mm512_set1_epi64(3));
    const __m512i shift = _mm512_mul_epu32(steps, _mm512_set1_epi64(39));
    const Vector half = {
        _mm512_sllv_epi64(one, _mm512_add_epi64(shift, _mm512_set1_epi64(7))),
        _mm512_sllv_epi64(one, _mm512_sub_epi64(shift, _mm512_set1_epi64(64 - 7)))};
    Vector fields = {_mm512_sub_epi64(value.low, own), value.high};
    fields = shifted(added(fields, half), shift);
    return {_mm512_andnot_si512(_mm512_set1_epi64(255), fields.low), fields.high};
  }
  static Vector sum(Vector acc, Vector x) {
    const __m512i one = _mm512_and_si512(acc.low, _mm512_set1_epi64(255));
    const __m512i other = _mm512_and_si512(x.low, _mm512_set1_epi64(255));
    const __m512i index = _mm512_max_epu32(one, other);
    const Vector fields = added(aligned(acc, one, index), aligned(x, other, index));
    return {_mm512_or_si512(fields.low, index), fields.high};
  }
};

}  // namespace

constinit const Kernels kAvx512Kernels =
    make_kernels<Float32, Float64, Float16, Bfloat16, Int32, Int64, Int16, Int8, Uint8, Sum64,
                 Sum128>(InstructionSet::avx512, make_optimizers<Float32, Float16, Bfloat16>());

}  // namespace gradcube::aggregation
