// GHASH, sixteen blocks of 16 bytes between two reductions.
//
// GHASH multiplies polynomials over GF(2) whose bits stand in reverse order. With the bytes of each
// block reversed it is POLYVAL (RFC 8452, appendix A), if its key is multiplied by x once: there
// the bits stand as the CPU multiplies them, and a product is reduced by two multiplications with
// the upper half of x^128 + x^127 + x^126 + x^121 + 1 (Gueron, Langley and Lindell, "AES-GCM-SIV:
// Specification and Analysis", 2017). It then lacks the factor x^128, which is why POLYVAL is
// defined with it.
//
// Sixteen blocks are multiplied by sixteen powers of the key, from the highest to the first, and
// summed up before they are reduced. A product of two halves each takes three multiplications
// (Karatsuba); the sums of the powers' halves are in the table.
//
// No inline function from elsewhere may be used here, not even from the standard library: the
// linker could choose this body, with instructions that not every CPU has, for the whole program.
#include "protocol/kernels/ghash_vpclmul.h"

#include <cstring>
#include <immintrin.h>

namespace gradcube::protocol {
namespace {

constexpr std::size_t kBlock = 16;
constexpr std::size_t kPowers = 16;

// From the highest to the first.
struct Table {
  __m128i powers[kPowers];
  __m128i sums[kPowers];  // in both halves: of the power's two halves
};
static_assert(sizeof(Table) == kGhashTableBytes);

__m128i swapped(__m128i value) { return _mm_shuffle_epi32(value, 0x4e); }

__m128i reversed(__m128i block) {
  return _mm_shuffle_epi8(block,
                          _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
}

// A product of 256 bits that is not put together yet.
struct Product {
  __m128i low, high, cross;
};

__m128i reduced(const Product& product) {
  const __m128i middle = _mm_xor_si128(product.cross, _mm_xor_si128(product.low, product.high));
  __m128i low = _mm_xor_si128(product.low, _mm_slli_si128(middle, 8));
  const __m128i high = _mm_xor_si128(product.high, _mm_srli_si128(middle, 8));
  const __m128i polynomial = _mm_set_epi64x(static_cast<long long>(0xc200000000000000U), 1);
  low = _mm_xor_si128(swapped(low), _mm_clmulepi64_si128(low, polynomial, 0x10));
  low = _mm_xor_si128(swapped(low), _mm_clmulepi64_si128(low, polynomial, 0x10));
  return _mm_xor_si128(low, high);
}

void add_product(Product& to, __m128i block, __m128i power, __m128i sum) {
  to.low = _mm_xor_si128(to.low, _mm_clmulepi64_si128(block, power, 0x00));
  to.high = _mm_xor_si128(to.high, _mm_clmulepi64_si128(block, power, 0x11));
  const __m128i halves = _mm_xor_si128(block, swapped(block));
  to.cross = _mm_xor_si128(to.cross, _mm_clmulepi64_si128(halves, sum, 0x00));
}

Product no_product() { return {_mm_setzero_si128(), _mm_setzero_si128(), _mm_setzero_si128()}; }

__m128i sum_of_halves(__m128i power) { return _mm_xor_si128(power, swapped(power)); }

__m128i folded(__m256i both) {
  return _mm_xor_si128(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
}

__m128i load(const std::uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// Sixteen blocks; `hash` is added to the first.
__m128i extended_by_sixteen(const Table& table, const std::uint8_t* bytes, __m128i hash) {
  const __m256i reverse = _mm256_broadcastsi128_si256(
      _mm_set_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15));
  __m256i low = _mm256_setzero_si256();
  __m256i high = low;
  __m256i cross = low;
  __m256i earlier = _mm256_zextsi128_si256(hash);
  for (std::size_t i = 0; i < kPowers; i += 2) {
    const __m256i read = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(bytes + i * kBlock));
    const __m256i blocks = _mm256_xor_si256(_mm256_shuffle_epi8(read, reverse), earlier);
    earlier = _mm256_setzero_si256();
    const __m256i powers = _mm256_load_si256(reinterpret_cast<const __m256i*>(&table.powers[i]));
    const __m256i sums = _mm256_load_si256(reinterpret_cast<const __m256i*>(&table.sums[i]));
    low = _mm256_xor_si256(low, _mm256_clmulepi64_epi128(blocks, powers, 0x00));
    high = _mm256_xor_si256(high, _mm256_clmulepi64_epi128(blocks, powers, 0x11));
    const __m256i halves = _mm256_xor_si256(blocks, _mm256_shuffle_epi32(blocks, 0x4e));
    cross = _mm256_xor_si256(cross, _mm256_clmulepi64_epi128(halves, sums, 0x00));
  }
  return reduced({folded(low), folded(high), folded(cross)});
}

}  // namespace

void expand_ghash_key(const std::uint8_t* key, std::uint8_t* table) noexcept {
  auto* to = reinterpret_cast<Table*>(table);
  // Times x: the bit that leaves at the top comes back as the polynomial.
  const __m128i read = reversed(load(key));
  const __m128i carries = _mm_srli_epi64(read, 63);
  const __m128i top = _mm_shuffle_epi32(_mm_srai_epi32(read, 31), 0xff);
  const __m128i polynomial = _mm_set_epi64x(static_cast<long long>(0xc200000000000000U), 1);
  const __m128i shifted = _mm_or_si128(_mm_slli_epi64(read, 1), _mm_slli_si128(carries, 8));
  const __m128i first = _mm_xor_si128(shifted, _mm_and_si128(top, polynomial));
  __m128i power = first;
  for (std::size_t i = kPowers; i-- > 0;) {
    to->powers[i] = power;
    to->sums[i] = sum_of_halves(power);
    Product next = no_product();
    add_product(next, power, first, sum_of_halves(first));
    power = reduced(next);
  }
}

void extend_ghash(const std::uint8_t* table, const std::uint8_t* bytes, std::size_t length,
                  std::uint8_t* hash) noexcept {
  const auto& of_key = *reinterpret_cast<const Table*>(table);
  __m128i sum = reversed(load(hash));
  for (; length >= kPowers * kBlock; bytes += kPowers * kBlock, length -= kPowers * kBlock) {
    sum = extended_by_sixteen(of_key, bytes, sum);
  }
  if (length != 0) {
    const std::size_t blocks = (length + kBlock - 1) / kBlock;
    Product product = no_product();
    for (std::size_t i = 0; i < blocks; ++i, bytes += kBlock) {
      __m128i block;
      if (i + 1 < blocks || length % kBlock == 0) {
        block = load(bytes);
      } else {
        alignas(kBlock) std::uint8_t last[kBlock] = {};
        std::memcpy(last, bytes, length % kBlock);
        block = load(last);
      }
      const std::size_t power = kPowers - blocks + i;
      add_product(product, _mm_xor_si128(reversed(block), sum), of_key.powers[power],
                  of_key.sums[power]);
      sum = _mm_setzero_si128();
    }
    sum = reduced(product);
  }
  _mm_storeu_si128(reinterpret_cast<__m128i*>(hash), reversed(sum));
}

}  // namespace gradcube::protocol
