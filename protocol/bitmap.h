// A set of up to 128 sequences, counted from a moving base. Both halves of a flow keep their window
// in such sets.
//
// Bit i stands for the sequence base + i. The owner keeps the base and calls advance() when it
// moves.
#ifndef GRADCUBE_PROTOCOL_BITMAP_H_
#define GRADCUBE_PROTOCOL_BITMAP_H_

#include <bit>
#include <cstdint>

namespace gradcube::protocol {

class Bitmap128 {
 public:
  static constexpr unsigned kBits = 128;

  constexpr Bitmap128() = default;

  // Bits 0 .. count-1.
  static constexpr Bitmap128 below(unsigned count) {
    if (count >= kBits) return Bitmap128(~Word{0});
    return Bitmap128((Word{1} << count) - 1);
  }

  // Bit i of `bits` becomes bit i + offset; bits beyond the top are lost.
  static constexpr Bitmap128 placed(std::uint64_t bits, unsigned offset) {
    return offset >= kBits ? Bitmap128() : Bitmap128(Word{bits} << offset);
  }

  constexpr bool test(unsigned bit) const { return ((word_ >> bit) & 1) != 0; }
  constexpr void set(unsigned bit) { word_ |= Word{1} << bit; }
  constexpr void clear(unsigned bit) { word_ &= ~(Word{1} << bit); }

  // Advances the base by `count` sequences.
  constexpr void advance(unsigned count) { word_ = count >= kBits ? 0 : word_ >> count; }

  constexpr bool any() const { return word_ != 0; }

  constexpr unsigned count() const {
    // Most sets are empty or one run from bit 0, as all arrives in order: then this spares the
    // baseline CPU, which has no instruction for it, two calls.
    if ((word_ & (word_ + 1)) == 0) return leading_run();
    return static_cast<unsigned>(std::popcount(low()) + std::popcount(high()));
  }

  // The lowest bit set; kBits when none is.
  constexpr unsigned lowest() const {
    if (low() != 0) return static_cast<unsigned>(std::countr_zero(low()));
    return 64 + static_cast<unsigned>(std::countr_zero(high()));
  }

  // The number of consecutive bits set from bit 0 up.
  constexpr unsigned leading_run() const { return Bitmap128(~word_).lowest(); }

  // One more than the highest bit set; 0 when none is.
  constexpr unsigned end() const {
    if (high() != 0) return kBits - static_cast<unsigned>(std::countl_zero(high()));
    return 64 - static_cast<unsigned>(std::countl_zero(low()));
  }

  // Bits first .. first + 63.
  constexpr std::uint64_t extract(unsigned first) const {
    return static_cast<std::uint64_t>(word_ >> first);
  }

  constexpr Bitmap128 operator&(Bitmap128 other) const { return Bitmap128(word_ & other.word_); }
  constexpr Bitmap128 operator|(Bitmap128 other) const { return Bitmap128(word_ | other.word_); }
  constexpr Bitmap128 operator~() const { return Bitmap128(~word_); }

 private:
  __extension__ typedef unsigned __int128 Word;

  constexpr explicit Bitmap128(Word word) : word_(word) {}
  constexpr std::uint64_t low() const { return static_cast<std::uint64_t>(word_); }
  constexpr std::uint64_t high() const { return static_cast<std::uint64_t>(word_ >> 64); }

  Word word_ = 0;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_BITMAP_H_
