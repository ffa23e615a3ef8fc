// A sum of floats without any rounding: an integer of 2304 bits that counts least denormals.
#ifndef GRADCUBE_TESTS_UNIT_AGGREGATION_EXACT_SUM_H_
#define GRADCUBE_TESTS_UNIT_AGGREGATION_EXACT_SUM_H_

#include <array>
#include <cmath>
#include <cstdint>

#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {

inline int mantissa_bits(DataType type) {
  switch (type) {
    case DataType::float32:
      return 23;
    case DataType::float64:
      return 52;
    case DataType::float16:
      return 10;
    default:
      return 7;
  }
}

class ExactSum {
 public:
  explicit ExactSum(DataType type) : mantissa_(mantissa_bits(type)), bytes_(element_bytes(type)) {}

  // Adds `times` * a finite float.
  ExactSum& add(Bits bits, std::int64_t times = 1) {
    const Bits sign = Bits{1} << (8 * bytes_ - 1);
    const bool negative = (bits & sign) != 0;
    const Bits magnitude = bits & ~sign;
    const Bits exponent = magnitude >> mantissa_;
    const Bits digits =
        (magnitude & ((Bits{1} << mantissa_) - 1)) + (exponent != 0 ? Bits{1} << mantissa_ : 0);
    const unsigned place = exponent != 0 ? static_cast<unsigned>(exponent) - 1 : 0;
    for (unsigned bit = 0; bit <= static_cast<unsigned>(mantissa_); ++bit) {
      if ((digits >> bit & 1) != 0) add_at(place + bit, negative ? -times : times);
    }
    return *this;
  }

  // In least denormals, with the precision of a long double.
  long double value() const {
    long double value = 0;
    for (std::size_t i = 0; i < kLimbs; ++i) {
      value += std::ldexp(static_cast<long double>(limbs_[i]), static_cast<int>(32 * i));
    }
    return value;
  }

 private:
  static constexpr std::size_t kLimbs = 72;

  void add_at(unsigned place, std::int64_t count) {
    std::int64_t carry = count << (place % 32);
    for (std::size_t i = place / 32; carry != 0; ++i) {
      const std::int64_t sum = limbs_[i] + carry;
      carry = (sum + (std::int64_t{1} << 31)) >> 32;  // limbs lie between -2^31 and 2^31 - 1
      limbs_[i] = sum - (carry << 32);
    }
  }

  std::array<std::int64_t, kLimbs> limbs_{};
  int mantissa_;
  std::size_t bytes_;
};

}  // namespace gradcube::aggregation::test

#endif  // GRADCUBE_TESTS_UNIT_AGGREGATION_EXACT_SUM_H_
