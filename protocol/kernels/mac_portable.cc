#include "protocol/kernels/mac_portable.h"

#include <algorithm>
#include <array>

namespace gradcube::protocol {

namespace {

using Byte = std::uint8_t;

// Times x, in the field of AES.
constexpr Byte doubled(Byte value) {
  return static_cast<Byte>(value << 1 ^ ((value & 0x80) != 0 ? 0x1b : 0));
}

constexpr Byte rotated(Byte value, int by) {
  return static_cast<Byte>(value << by | value >> (8 - by));
}

// Inverses are found as the powers of a generator and of its inverse.
constexpr std::array<Byte, 256> make_substitutions() {
  std::array<Byte, 256> table{};
  Byte power = 1;
  Byte inverse = 1;
  do {
    power = static_cast<Byte>(power ^ doubled(power));  // times x + 1
    inverse = static_cast<Byte>(inverse ^ inverse << 1);
    inverse = static_cast<Byte>(inverse ^ inverse << 2);
    inverse = static_cast<Byte>(inverse ^ inverse << 4);
    if ((inverse & 0x80) != 0) inverse ^= 0x09;
    table[power] = static_cast<Byte>(inverse ^ rotated(inverse, 1) ^ rotated(inverse, 2) ^
                                     rotated(inverse, 3) ^ rotated(inverse, 4) ^ 0x63);
  } while (power != 1);
  table[0] = 0x63;
  return table;
}
constexpr std::array<Byte, 256> kSubstitutions = make_substitutions();

void add(MacBlock& to, const MacBlock& other) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] ^= other[i];
}

void next_round_key(MacBlock& key, Byte constant) {
  for (std::size_t i = 0; i < 4; ++i) key[i] ^= kSubstitutions[key[12 + (i + 1) % 4]];
  key[0] ^= constant;
  for (std::size_t i = 4; i < key.size(); ++i) key[i] ^= key[i - 4];
}

void mix_column(Byte* column) {
  const Byte all = column[0] ^ column[1] ^ column[2] ^ column[3];
  const Byte first = column[0];
  for (std::size_t i = 0; i < 4; ++i) {
    const Byte next = i == 3 ? first : column[i + 1];
    column[i] = static_cast<Byte>(column[i] ^ all ^ doubled(column[i] ^ next));
  }
}

// Times the key, in GCM's field, whose first bit is that of x^0.
MacBlock product(const MacBlock& hash, const MacBlock& key) {
  MacBlock sum{};
  MacBlock power = key;
  for (std::size_t bit = 0; bit < 128; ++bit) {
    if ((hash[bit / 8] >> (7 - bit % 8) & 1) != 0) add(sum, power);
    const bool carries = (power[15] & 1) != 0;
    for (std::size_t i = 15; i > 0; --i) {
      power[i] = static_cast<Byte>(power[i] >> 1 | power[i - 1] << 7);
    }
    power[0] = static_cast<Byte>(power[0] >> 1 ^ (carries ? 0xe1 : 0));
  }
  return sum;
}

}  // namespace

MacBlock ghash_portable(const MacBlock& key, MacBlock hash, std::span<const std::uint8_t> bytes) {
  while (!bytes.empty()) {
    const auto block = bytes.first(std::min(bytes.size(), hash.size()));
    for (std::size_t i = 0; i < block.size(); ++i) hash[i] ^= block[i];
    hash = product(hash, key);
    bytes = bytes.subspan(block.size());
  }
  return hash;
}

MacBlock aes128_portable(const MacBlock& key, MacBlock block) {
  constexpr unsigned kRounds = 10;
  MacBlock round_key = key;
  add(block, round_key);
  Byte constant = 1;
  for (unsigned round = 1; round <= kRounds; ++round, constant = doubled(constant)) {
    MacBlock shifted;
    for (std::size_t i = 0; i < block.size(); ++i) {
      shifted[i] = kSubstitutions[block[(i + 4 * (i % 4)) % block.size()]];
    }
    block = shifted;
    for (std::size_t column = 0; round != kRounds && column < block.size(); column += 4) {
      mix_column(&block[column]);
    }
    next_round_key(round_key, constant);
    add(block, round_key);
  }
  return block;
}

}  // namespace gradcube::protocol
