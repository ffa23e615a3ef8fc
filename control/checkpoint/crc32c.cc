#include "control/checkpoint/crc32c.h"

#include <array>
#include <cstddef>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace gradcube::control {
namespace {

constexpr std::uint32_t kPolynomial = 0x82f63b78;  // its bits in reverse order

// What a byte makes of a remainder of 0.
constexpr std::array<std::uint32_t, 256> make_remainders() {
  std::array<std::uint32_t, 256> remainders{};
  for (std::uint32_t byte = 0; byte < remainders.size(); ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1) != 0 ? kPolynomial : 0);
    remainders[byte] = crc;
  }
  return remainders;
}

constexpr std::array<std::uint32_t, 256> kRemainders = make_remainders();

#if defined(__x86_64__)
// Compiled for SSE4.2 alone, because the library runs on processors without it.
__attribute__((target("sse4.2"))) std::uint32_t extend_by_instruction(
    std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  const std::uint8_t* at = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = crc;
  for (; left >= sizeof(std::uint64_t); left -= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    wide = _mm_crc32_u64(wide, word);
    at += sizeof word;
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left) crc = _mm_crc32_u8(crc, *at++);
  return crc;
}
#endif

using ExtendFunction = std::uint32_t (*)(std::uint32_t, std::span<const std::uint8_t>);

ExtendFunction fastest() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2") != 0) return extend_by_instruction;
#endif
  return extend_crc32c_by_table;
}

}  // namespace

std::uint32_t extend_crc32c_by_table(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  for (const std::uint8_t byte : bytes) crc = crc >> 8 ^ kRemainders[(crc ^ byte) & 0xff];
  return crc;
}

std::uint32_t extend_crc32c(std::uint32_t crc, std::span<const std::uint8_t> bytes) {
  static const ExtendFunction function = fastest();
  return function(crc, bytes);
}

}  // namespace gradcube::control
