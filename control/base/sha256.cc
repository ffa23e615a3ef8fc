#include "control/base/sha256.h"

#include <bit>
#include <cstddef>
#include <cstring>

namespace gradcube::control {
namespace {

constexpr std::size_t kBlock = 64;
constexpr unsigned kRounds = 64;

// The first 32 bits after the point of a prime's root: of the square root (degree 2) or of the cube
// root (degree 3). The standard makes its constants so. Found bit by bit, in whole numbers: the
// greatest r with r^degree <= prime * 2^(32 * degree).
constexpr std::uint32_t root_bits(unsigned prime, unsigned degree) {
  using Wide = unsigned __int128;
  Wide root = 0;
  for (int bit = 36; bit >= 0; --bit) {
    const Wide next = root | (Wide{1} << bit);
    const Wide power = degree == 2 ? next * next : next * next * next;
    if (power <= (Wide{prime} << (32 * degree))) root = next;
  }
  return static_cast<std::uint32_t>(root);
}

struct Constants {
  std::uint32_t begin[8] = {};
  std::uint32_t of_round[kRounds] = {};
};

constexpr Constants make_constants() {
  Constants constants;
  unsigned found = 0;
  for (unsigned number = 2; found < kRounds; ++number) {
    bool prime = true;
    for (unsigned divisor = 2; divisor * divisor <= number; ++divisor) {
      prime = prime && number % divisor != 0;
    }
    if (!prime) continue;
    if (found < 8) constants.begin[found] = root_bits(number, 2);
    constants.of_round[found++] = root_bits(number, 3);
  }
  return constants;
}

constexpr Constants kConstants = make_constants();

std::uint32_t big_endian(const std::uint8_t* bytes) {
  return std::uint32_t{bytes[0]} << 24 | std::uint32_t{bytes[1]} << 16 |
         std::uint32_t{bytes[2]} << 8 | std::uint32_t{bytes[3]};
}

void take_block(std::uint32_t (&state)[8], const std::uint8_t* block) {
  std::uint32_t words[kRounds];
  for (unsigned i = 0; i < 16; ++i) words[i] = big_endian(block + std::size_t{4} * i);
  for (unsigned i = 16; i < kRounds; ++i) {
    const std::uint32_t a = words[i - 15];
    const std::uint32_t b = words[i - 2];
    words[i] = words[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + words[i - 7] +
               (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
  }
  std::uint32_t v[8];
  std::memcpy(v, state, sizeof v);
  for (unsigned i = 0; i < kRounds; ++i) {
    const std::uint32_t sum1 = std::rotr(v[4], 6) ^ std::rotr(v[4], 11) ^ std::rotr(v[4], 25);
    const std::uint32_t choice = (v[4] & v[5]) ^ (~v[4] & v[6]);
    const std::uint32_t first = v[7] + sum1 + choice + kConstants.of_round[i] + words[i];
    const std::uint32_t sum0 = std::rotr(v[0], 2) ^ std::rotr(v[0], 13) ^ std::rotr(v[0], 22);
    const std::uint32_t majority = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    for (unsigned place = 7; place > 0; --place) v[place] = v[place - 1];
    v[4] += first;
    v[0] = first + sum0 + majority;
  }
  for (unsigned i = 0; i < 8; ++i) state[i] += v[i];
}

}  // namespace

std::array<std::uint8_t, 32> sha256(std::string_view bytes) {
  std::uint32_t state[8];
  std::memcpy(state, kConstants.begin, sizeof state);
  const std::uint64_t bits = std::uint64_t{bytes.size()} * 8;
  for (; bytes.size() >= kBlock; bytes.remove_prefix(kBlock)) {
    take_block(state, reinterpret_cast<const std::uint8_t*>(bytes.data()));
  }
  // The rest, a bit of 1, zeros, and the length: in one block or in two.
  std::uint8_t rest[2 * kBlock] = {};
  if (!bytes.empty()) std::memcpy(rest, bytes.data(), bytes.size());
  rest[bytes.size()] = 0x80;
  const std::size_t end = bytes.size() + 9 <= kBlock ? kBlock : 2 * kBlock;
  for (unsigned i = 0; i < 8; ++i) rest[end - 1 - i] = static_cast<std::uint8_t>(bits >> (8 * i));
  for (std::size_t at = 0; at < end; at += kBlock) take_block(state, rest + at);
  std::array<std::uint8_t, 32> digest{};
  for (unsigned i = 0; i < 32; ++i) {
    digest[i] = static_cast<std::uint8_t>(state[i / 4] >> (8 * (3 - i % 4)));
  }
  return digest;
}

}  // namespace gradcube::control
