#include "aggregation/reproducible.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace gradcube::aggregation {
namespace {

__extension__ using Signed128 = __int128;
__extension__ using Unsigned128 = unsigned __int128;

struct Sum64 {
  using Word = std::uint64_t;
  using SignedWord = std::int64_t;
  static constexpr unsigned kIndexBits = 5;
  static constexpr unsigned kStride = 19;
};

struct Sum128 {
  using Word = Unsigned128;
  using SignedWord = Signed128;
  static constexpr unsigned kIndexBits = 8;
  static constexpr unsigned kStride = 39;
};

constexpr double kLeastNormalFloat = 0x1p-126;

constexpr double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(1023 + exponent) << 52);
}

// The float32 next to `value`, of the two around it the odd one: a second rounding, to at most 22
// bits, then yields what a single one would.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  const double back = nearest;
  if (back == value) return nearest;
  const auto bits = std::bit_cast<std::uint32_t>(nearest);
  return std::bit_cast<float>((std::abs(back) > std::abs(value) ? bits - 1 : bits) | 1);
}

template <typename Bits_, unsigned kMantissa_, int kLeastDigit_>
struct Float {
  using Bits = Bits_;
  static constexpr unsigned kWidth = sizeof(Bits) * 8;
  static constexpr unsigned kMantissa = kMantissa_;
  static constexpr int kLeastDigit = kLeastDigit_;  // the least denormal is 2^-kLeastDigit
  static constexpr Bits kSign = static_cast<Bits>(Bits{1} << (kWidth - 1));
  static constexpr Bits kFraction = static_cast<Bits>((Bits{1} << kMantissa) - 1);
  static constexpr Bits kInfinity = static_cast<Bits>(kSign - (Bits{1} << kMantissa));
  static constexpr Bits kNan = static_cast<Bits>(kInfinity | (Bits{1} << (kMantissa - 1)));
};

// nearest(): rounded to the type, ties to even. At least the least normal float32.
struct Float32 : Float<std::uint32_t, 23, 149> {
  static Bits nearest(double value) { return std::bit_cast<Bits>(static_cast<float>(value)); }
};
struct Float16 : Float<std::uint16_t, 10, 24> {
  static Bits nearest(double value) { return float32_to_float16(rounded_to_odd(value)); }
};
struct Bfloat16 : Float<std::uint16_t, 7, 133> {
  static Bits nearest(double value) { return float32_to_bfloat16(rounded_to_odd(value)); }
};
using Float64 = Float<std::uint64_t, 52, 1074>;

template <typename Value>
Value load(const void* from, std::size_t index) {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(from) + index * sizeof(Value), sizeof(Value));
  return value;
}

template <typename Value>
void store(void* to, std::size_t index, Value value) {
  std::memcpy(static_cast<std::byte*>(to) + index * sizeof(Value), &value, sizeof(Value));
}

// A way of carrying a float. kPiece: the bits of a piece.
template <typename Type, typename Sum, unsigned kPiece>
struct Way {
  using Bits = typename Type::Bits;
  using Word = typename Sum::Word;
  using SignedWord = typename Sum::SignedWord;
  static constexpr unsigned kStride = Sum::kStride;
  static constexpr unsigned kMantissa = Type::kMantissa;
  static constexpr Word kSpecialIndex = (Word{1} << Sum::kIndexBits) - 1;
  static constexpr unsigned kWordBits = sizeof(Word) * 8;

  // A special value drops every number.
  static constexpr unsigned kMostPlace = (Type::kInfinity >> kMantissa) - 2 + kMantissa;
  static_assert(kMostPlace / kPiece + 3 <= kSpecialIndex);
  // What the pieces i to i-2 hold of a number with its first digit in piece i.
  static_assert(2 * kPiece >= kMantissa);

  static constexpr Word word(Word fields, Word index) {
    return static_cast<Word>(fields << Sum::kIndexBits) | index;
  }

  static Word to_carrier(Bits bits) {
    const Bits magnitude = bits & static_cast<Bits>(~Type::kSign);
    if (magnitude > Type::kInfinity) return word(Word{1} << 2 * kStride, kSpecialIndex);
    const Word negative = bits >> (Type::kWidth - 1);
    if (magnitude == Type::kInfinity) {
      return word(Word{1} << (negative != 0 ? 0 : kStride), kSpecialIndex);
    }
    const auto exponent = static_cast<unsigned>(magnitude >> kMantissa);
    const unsigned normal = exponent != 0 ? 1 : 0;
    // The number is digits * 2^place least denormals. A denormal counts as if it had a first digit.
    const Word digits = (magnitude & Type::kFraction) | Word{normal} << kMantissa;
    const unsigned place = exponent - normal;
    const unsigned index = (place + kMantissa) / kPiece;
    const Word pieces = digits << (place + 2 * kPiece - index * kPiece);
    constexpr Word kLowest = (Word{1} << kPiece) - 1;
    const Word fields = pieces >> 2 * kPiece << 2 * kStride |
                        (pieces >> kPiece & kLowest) << kStride | (pieces & kLowest);
    // The sign without a branch: no processor can predict it.
    return word((fields ^ (Word{0} - negative)) + negative, index);
  }

  // The lowest field, with its sign; what is left has lost it.
  static SignedWord take_field(SignedWord& fields) {
    constexpr unsigned kAbove = kWordBits - kStride;
    const SignedWord field = static_cast<SignedWord>(static_cast<Word>(fields) << kAbove) >> kAbove;
    fields =
        static_cast<SignedWord>(static_cast<Word>(fields) - static_cast<Word>(field)) >> kStride;
    return field;
  }

  // Where a double holds the sum, its quotient is rounded twice, first to 53 bits, and the result
  // is that of one rounding. For the first rounding cannot yield a midpoint m of two results where
  // the exact quotient is none: m has at most 25 bits, and the sum (of at most 47 bits) and m *
  // divisor are multiples of 1 or of m's last digit, whichever is less. So they are equal or differ
  // by more than 2^-48 of their size.
  static Bits from_carrier(Word carrier, std::uint32_t divisor) {
    const auto index = static_cast<unsigned>(carrier & kSpecialIndex);
    SignedWord fields = static_cast<SignedWord>(carrier) >> Sum::kIndexBits;
    const auto low = static_cast<Word>(take_field(fields));
    const auto middle = static_cast<Word>(take_field(fields));
    const auto high = static_cast<Word>(fields);
    if (index == kSpecialIndex) {
      if (high != 0 || (middle != 0 && low != 0)) return Type::kNan;
      return middle != 0 ? Type::kInfinity : Type::kInfinity | Type::kSign;
    }
    const Word sum = (high << 2 * kPiece) + (middle << kPiece) + low;
    const int place = static_cast<int>(index * kPiece) - static_cast<int>(2 * kPiece);
    if constexpr (kWordBits == 64) {
      const double value = static_cast<double>(static_cast<SignedWord>(sum)) / divisor *
                           power_of_two(place - Type::kLeastDigit);
      // What is less than a normal float32 goes another way: a thread may flush it to zero.
      if (std::abs(value) >= kLeastNormalFloat) return Type::nearest(value);
    }
    if (sum == 0) return 0;
    const bool negative = sum >> (kWordBits - 1) != 0;
    const Bits rounded = quotient(negative ? Word{0} - sum : sum, place, divisor);
    return negative ? rounded | Type::kSign : rounded;
  }

  static int leading_zeros(Word value) {
    const auto upper = static_cast<std::uint64_t>(value >> (kWordBits - 64));
    if constexpr (kWordBits == 64) return std::countl_zero(upper);
    return upper != 0 ? std::countl_zero(upper)
                      : 64 + std::countl_zero(static_cast<std::uint64_t>(value));
  }

  // In steps of 32 bits, as a compiler's division of 128 bits takes far longer.
  static Word divided(Word sum, std::uint64_t divisor) {
    if constexpr (kWordBits == 64) return sum / divisor;
    const auto high = static_cast<std::uint64_t>(sum >> (kWordBits - 64));
    const auto low = static_cast<std::uint64_t>(sum);
    const std::uint64_t middle = high % divisor << 32 | low >> 32;
    const std::uint64_t lowest = middle % divisor << 32 | (low & UINT32_MAX);
    return Word{high / divisor} << (kWordBits - 64) | Word{middle / divisor} << 32 |
           lowest / divisor;
  }

  // The bits of sum * 2^place / divisor least denormals, rounded to nearest, ties to even. The sum
  // is not 0. What the division cuts off, 16 bits below a word, decides nothing: an exact quotient
  // that is no midpoint differs from each by more than 2^-48 of its size, or 2^-100 in 128 bits, as
  // above.
  static Bits quotient(Word sum, int place, std::uint32_t divisor) {
    int up = leading_zeros(sum);
    sum <<= up;
    place -= up;
    if (divisor > 1) {
      sum = divided(sum, divisor);
      up = leading_zeros(sum);
      sum <<= up;
      place -= up;
    }
    // The number's last digit that the type has, in least denormals.
    const int first = place + static_cast<int>(kWordBits) - 1;
    const int last = first > static_cast<int>(kMantissa) ? first - static_cast<int>(kMantissa) : 0;
    const int dropped = last - place;  // more than 0: a word has more bits than a mantissa
    if (dropped > static_cast<int>(kWordBits)) return 0;
    const Word half = Word{1} << (dropped - 1);
    const Word kept = dropped == static_cast<int>(kWordBits) ? 0 : sum >> dropped;
    const Word rest = sum - (kept == 0 ? 0 : kept << dropped);
    const Word up_by = rest > half || (rest == half && (kept & 1) != 0) ? 1 : 0;
    // The first digit of a normal number adds one to the exponent, a carry one more.
    if (static_cast<unsigned>(last) + 1 >= (Type::kInfinity >> kMantissa)) return Type::kInfinity;
    const Bits bits = static_cast<Bits>(static_cast<Bits>(last) << kMantissa);
    return static_cast<Bits>(bits + static_cast<Bits>(kept + up_by));
  }
};

// Sums of integers, and their means, are exact in a wider one.
template <typename Integer, typename SignedWord, unsigned kShift>
struct IntegerWay {
  using Bits = Integer;
  using Word = SignedWord;
  static Word to_carrier(Bits value) { return Word{value} * (Word{1} << kShift); }
  static Bits from_carrier(Word carrier, std::uint32_t divisor) {
    return static_cast<Bits>((carrier >> kShift) / Word{divisor});
  }
};

// Floats that travel as they are, but for zeros without a sign and one NaN.
template <typename Type>
struct Canonical {
  using Bits = typename Type::Bits;
  using Word = Bits;
  static Word to_carrier(Bits bits) {
    if ((bits & static_cast<Bits>(~Type::kSign)) > Type::kInfinity) return Type::kNan;
    return bits == Type::kSign ? Bits{0} : bits;
  }
  static Bits from_carrier(Word carrier, std::uint32_t /*divisor*/) { return to_carrier(carrier); }
};

constexpr bool is_float(DataType type) {
  return type == DataType::float32 || type == DataType::float64 || type == DataType::float16 ||
         type == DataType::bfloat16;
}

template <typename Type, typename Visit>
void with_way_of(DataType type, DataType carrier, Visit visit) {
  if (carrier == type) return visit(Canonical<Type>());
  return carrier == DataType::sum64 ? visit(Way<Type, Sum64, 14>())
                                    : visit(Way<Type, Sum128, 22>());
}

// Calls visit(way) for how a float is carried, or an integer in a wider one.
template <typename Visit>
void with_way(DataType type, DataType carrier, Visit visit) {
  switch (type) {
    case DataType::int32:
      return visit(IntegerWay<std::int32_t, std::int64_t, 0>());
    case DataType::int64:
      return visit(IntegerWay<std::int64_t, Signed128, Sum128::kIndexBits>());
    case DataType::float32:
      return with_way_of<Float32>(type, carrier, visit);
    case DataType::float16:
      return with_way_of<Float16>(type, carrier, visit);
    case DataType::bfloat16:
      return with_way_of<Bfloat16>(type, carrier, visit);
    default:
      if (carrier == type) return visit(Canonical<Float64>());
      return visit(Way<Float64, Sum128, 30>());
  }
}

void copy(DataType type, const void* values, void* results, std::size_t count) {
  // Buffers of no elements may be nowhere.
  if (count != 0) std::memmove(results, values, count * element_bytes(type));
}

}  // namespace

std::optional<Carrier> carrier_of(const ReproducibleReduction& reduction) noexcept {
  const auto [type, operation, ranks] = reduction;
  if (travels_unchanged(reduction)) return Carrier{type, operation};
  if (ranks > kMostReproducible) return std::nullopt;
  if (type == DataType::int32) return Carrier{DataType::int64, Operation::sum};
  if (type == DataType::int64) return Carrier{DataType::sum128, Operation::sum};
  const bool adds = operation == Operation::sum || operation == Operation::average;
  if (!adds || ranks <= 2) return Carrier{type, operation};
  if (type == DataType::float64 && ranks > kMostReproducibleFloat64) return std::nullopt;
  const bool narrow = type != DataType::float64 && ranks <= kMostSum64;
  return Carrier{narrow ? DataType::sum64 : DataType::sum128, Operation::sum};
}

bool travels_unchanged(const ReproducibleReduction& reduction) noexcept {
  return !is_float(reduction.type) && reduction.operation != Operation::average;
}

void to_carriers(const ReproducibleReduction& reduction, const void* values, void* carriers,
                 std::size_t count) noexcept {
  const DataType type = reduction.type;
  const DataType carrier = carrier_of(reduction)->type;
  if (carrier == type && !is_float(type)) return copy(type, values, carriers, count);
  with_way(type, carrier, [&]<typename How>(How) {
    for (std::size_t i = 0; i < count; ++i) {
      store(carriers, i, How::to_carrier(load<typename How::Bits>(values, i)));
    }
  });
}

void from_carriers(const ReproducibleReduction& reduction, const void* carriers, void* results,
                   std::size_t count) noexcept {
  const DataType type = reduction.type;
  const DataType carrier = carrier_of(reduction)->type;
  if (carrier == type && !is_float(type)) return copy(type, carriers, results, count);
  const std::uint32_t divisor = reduction.operation == Operation::average ? reduction.ranks : 1;
  with_way(type, carrier, [&]<typename How>(How) {
    for (std::size_t i = 0; i < count; ++i) {
      store(results, i, How::from_carrier(load<typename How::Word>(carriers, i), divisor));
    }
  });
}

}  // namespace gradcube::aggregation
