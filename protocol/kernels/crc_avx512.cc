// CRC32C by folding (Gopal et al., "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ
// Instruction", Intel, 2009), 256 bytes at a time; the CRC32 instruction reduces what is left.
//
// The bytes are a polynomial over GF(2), and their CRC is its remainder modulo P. Sixteen bytes
// with the halves L and H, that lie `distance` bits before others, have the same remainder there as
// L * (x^(distance + 64) mod P) + H * (x^distance mod P). Two carry-less multiplications and two
// additions thus fold them into those. Each 512-bit vector holds four such lanes. ISA-L folds in
// the same way; this has less to do before and after, which counts at the length of a segment.
//
// No inline function from elsewhere may be used here, not even from the standard library: the
// linker could choose this body, with instructions that not every CPU has, for the whole program.
#include "protocol/kernels/crc_avx512.h"

#include <cstring>
#include <immintrin.h>

namespace gradcube::protocol {
namespace {

constexpr std::uint32_t kReflectedPolynomial = 0x82f63b78U;
constexpr std::size_t kVector = 64;
constexpr std::size_t kBlock = 4 * kVector;

// x^n mod P, reflected: the top bit is that of x^0.
constexpr std::uint32_t power(unsigned n) {
  std::uint32_t remainder = 0x80000000U;
  for (unsigned i = 0; i < n; ++i) {
    remainder = remainder >> 1 ^ ((remainder & 1) != 0 ? kReflectedPolynomial : 0);
  }
  return remainder;
}

// The factor that moves 64 bits on by `distance` bits. The product of reflected numbers lies one
// bit too low, which the shift makes up for; the 32 bits are those by which a factor is shorter
// than what it multiplies.
constexpr long long factor(unsigned distance) {
  const std::uint64_t shifted = std::uint64_t{power(distance - 32)} << 1;
  return static_cast<long long>(shifted);
}

struct Factors {
  long long of_low_half;
  long long of_high_half;
};
constexpr Factors factors(std::size_t bytes) {
  const auto bits = static_cast<unsigned>(bytes * 8);
  return {factor(bits + 64), factor(bits)};
}
constexpr Factors kOverBlock = factors(kBlock);
constexpr Factors kOverVector = factors(kVector);

__m512i in_all_lanes(Factors f) {
  return _mm512_set_epi64(f.of_high_half, f.of_low_half, f.of_high_half, f.of_low_half,
                          f.of_high_half, f.of_low_half, f.of_high_half, f.of_low_half);
}

__m512i load(const std::uint8_t* from) { return _mm512_loadu_si512(from); }

// What the factors move on, added to `onto`.
__m512i fold(__m512i vector, __m512i by, __m512i onto) {
  constexpr int kAddAll = 0x96;
  return _mm512_ternarylogic_epi64(_mm512_clmulepi64_epi128(vector, by, 0x00),
                                   _mm512_clmulepi64_epi128(vector, by, 0x11), onto, kAddAll);
}

// length >= kBlock; leaves less than a vector.
std::uint32_t fold_vectors(std::uint32_t crc, const std::uint8_t*& bytes, std::size_t& length) {
  __m512i a = _mm512_xor_si512(load(bytes),
                               _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(crc))));
  __m512i b = load(bytes + kVector);
  __m512i c = load(bytes + 2 * kVector);
  __m512i d = load(bytes + 3 * kVector);
  const __m512i over_block = in_all_lanes(kOverBlock);
  for (bytes += kBlock, length -= kBlock; length >= kBlock; bytes += kBlock, length -= kBlock) {
    a = fold(a, over_block, load(bytes));
    b = fold(b, over_block, load(bytes + kVector));
    c = fold(c, over_block, load(bytes + 2 * kVector));
    d = fold(d, over_block, load(bytes + 3 * kVector));
  }
  const __m512i over_vector = in_all_lanes(kOverVector);
  d = fold(fold(fold(a, over_vector, b), over_vector, c), over_vector, d);
  for (; length >= kVector; bytes += kVector, length -= kVector) {
    d = fold(d, over_vector, load(bytes));
  }
  alignas(kVector) std::uint64_t words[kVector / sizeof(std::uint64_t)];
  _mm512_store_si512(words, d);
  std::uint64_t remainder = 0;
  for (const std::uint64_t word : words) remainder = _mm_crc32_u64(remainder, word);
  return static_cast<std::uint32_t>(remainder);
}

}  // namespace

std::uint32_t extend_crc_avx512(std::uint32_t crc, const std::uint8_t* bytes,
                                std::size_t length) noexcept {
  if (length >= kBlock) crc = fold_vectors(crc, bytes, length);
  std::uint64_t remainder = crc;
  for (; length >= sizeof(std::uint64_t); bytes += 8, length -= 8) {
    std::uint64_t word;
    std::memcpy(&word, bytes, sizeof word);
    remainder = _mm_crc32_u64(remainder, word);
  }
  crc = static_cast<std::uint32_t>(remainder);
  for (; length != 0; ++bytes, --length) crc = _mm_crc32_u8(crc, *bytes);
  return crc;
}

}  // namespace gradcube::protocol
