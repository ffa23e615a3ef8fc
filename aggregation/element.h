// The element types that a collective or a message may carry, the operations that combine elements,
// which operation fits which type, and the scalar conversions of the two 16-bit floats.
//
// The numbers of both enumerations are those of trainer/include/gradcube/gradcube.h. They cross
// process and host boundaries. Compare a number from a ring or a packet by is_data_type() or with
// kOperations before you cast it, and check the pair with supports(). The names are those of
// command lines and reports ("float32", "sum").
//
// All functions here are pure. Any thread may call them.
#ifndef GRADCUBE_AGGREGATION_ELEMENT_H_
#define GRADCUBE_AGGREGATION_ELEMENT_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace gradcube::aggregation {

enum class DataType : std::uint8_t {
  float32 = 0,
  float64 = 1,
  float16 = 2,   // IEEE 754 binary16
  bfloat16 = 3,  // the upper half of a binary32
  int32 = 4,
  int64 = 5,
  int8 = 6,
  uint8 = 7,
  bytes = 8,  // for collectives that move data and combine nothing
  // What carries sums of other types in reproducible jobs (reproducible.h). No trainer names them.
  sum64 = 9,
  sum128 = 10,
};
inline constexpr std::size_t kDataTypes = 9;      // that kernels know by these names
inline constexpr std::size_t kElementTypes = 11;  // that kernels may add

// Types that no kernel knows, numbered from kFirstCopiedType on. They are moved, and trainers name
// them so that it is seen if they differ. Those that parts_of() has are combined, too.
struct CopiedType {
  std::string_view name;
  std::uint8_t bytes;
};
inline constexpr std::size_t kFirstCopiedType = 16;
inline constexpr std::array<CopiedType, 12> kCopiedTypes = {{{"bool", 1},
                                                             {"int16", 2},
                                                             {"uint16", 2},
                                                             {"uint32", 4},
                                                             {"uint64", 8},
                                                             {"complex32", 4},
                                                             {"complex64", 8},
                                                             {"complex128", 16},
                                                             {"float8_e4m3fn", 1},
                                                             {"float8_e4m3fnuz", 1},
                                                             {"float8_e5m2", 1},
                                                             {"float8_e5m2fnuz", 1}}};

// Whether a trainer may name the type of this number.
constexpr bool is_data_type(std::size_t number) noexcept {
  return number < kDataTypes ||
         (number >= kFirstCopiedType && number < kFirstCopiedType + kCopiedTypes.size());
}

// Whether trainers that exchange data mean different things by it. Bytes may be anything.
constexpr bool differ(DataType one, DataType other) noexcept {
  return one != other && one != DataType::bytes && other != DataType::bytes;
}

enum class Operation : std::uint8_t {
  sum = 0,
  average = 1,  // the mean of all trainers' values: docs/arithmetic.md
  min = 2,
  max = 3,
};
inline constexpr std::size_t kOperations = 4;

// The size of one element in bytes. 0 for a value outside the enumeration.
constexpr std::size_t element_bytes(DataType type) noexcept {
  switch (type) {
    case DataType::int8:
    case DataType::uint8:
    case DataType::bytes:
      return 1;
    case DataType::float16:
    case DataType::bfloat16:
      return 2;
    case DataType::float32:
    case DataType::int32:
      return 4;
    case DataType::float64:
    case DataType::int64:
    case DataType::sum64:
      return 8;
    case DataType::sum128:
      return 16;
  }
  const auto number = static_cast<std::size_t>(type);
  return number >= kFirstCopiedType && is_data_type(number)
             ? kCopiedTypes[number - kFirstCopiedType].bytes
             : 0;
}

// How a kernel sees elements that consist of others: a complex number as its two parts, and truth
// as a byte of 0 or 1, of which the greatest is "or".
struct Parts {
  DataType type{};
  unsigned count = 1;
  bool sum_is_max = false;
};
inline constexpr DataType kTruth{16};
inline constexpr DataType kComplex64{22};
inline constexpr DataType kComplex128{23};
constexpr Parts parts_of(DataType type) noexcept {
  if (type == kTruth) return {DataType::uint8, 1, true};
  if (type == kComplex64) return {DataType::float32, 2};
  if (type == kComplex128) return {DataType::float64, 2};
  return {type};
}
// What a kernel does with the parts.
constexpr Operation operation_on_parts(DataType type, Operation operation) noexcept {
  return parts_of(type).sum_is_max && operation == Operation::sum ? Operation::max : operation;
}

// Whether elements of the type can be combined by the operation. Bytes cannot be combined at all.
// int8 and uint8 have no average: a sum of a few such numbers does not fit in the type any more.
// sum64 and sum128 can only be added. False for values outside the enumerations.
constexpr bool supports(DataType type, Operation operation) noexcept {
  const Parts parts = parts_of(type);
  // Complex numbers have no order.
  if (parts.count != 1) return operation == Operation::sum || operation == Operation::average;
  type = parts.type;
  const bool known = element_bytes(type) != 0 && static_cast<std::size_t>(operation) < kOperations;
  switch (type) {
    case DataType::bytes:
      return false;
    case DataType::int8:
    case DataType::uint8:
      return known && operation != Operation::average;
    case DataType::sum64:
    case DataType::sum128:
      return operation == Operation::sum;
    default:
      return known && static_cast<std::size_t>(type) < kDataTypes;
  }
}

// "float32"..., "sum"...; "?" for a value outside the enumeration.
std::string_view data_type_name(DataType type) noexcept;
std::string_view operation_name(Operation operation) noexcept;

// The reverse, of what kernels know. Names must match exactly.
std::optional<DataType> parse_data_type(std::string_view name) noexcept;
std::optional<Operation> parse_operation(std::string_view name) noexcept;

// Conversions. To float32 they are exact. From float32 they round to nearest, ties to even. They
// keep denormals in both directions. A value beyond the range becomes an infinity. A NaN becomes a
// quiet NaN with the same sign and the upper bits of the payload. The FTZ and DAZ settings of the
// calling thread do not matter: the only denormal float32 numbers in this arithmetic are those that
// round to zero anyway.

constexpr float float16_to_float32(std::uint16_t half) noexcept {
  constexpr std::uint32_t kRebias = std::uint32_t{127 - 15} << 23;
  const std::uint32_t sign = (std::uint32_t{half} & 0x8000u) << 16;
  const std::uint32_t shifted = (std::uint32_t{half} & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & 0x0f800000u;
  // For a denormal: put an implicit one before the mantissa, then subtract it. This is exact and
  // needs no loop over the bits.
  const float denormal =
      std::bit_cast<float>(shifted + kRebias + 0x00800000u) - std::bit_cast<float>(0x38800000u);
  const bool special = exponent == 0x0f800000u;
  const std::uint32_t normal = shifted + kRebias + (special ? kRebias : 0u);
  const std::uint32_t quiet = special && shifted != exponent ? 0x00400000u : 0u;
  const std::uint32_t magnitude = exponent == 0 ? std::bit_cast<std::uint32_t>(denormal) : normal;
  return std::bit_cast<float>(magnitude | quiet | sign);
}

constexpr std::uint16_t float32_to_float16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  const std::uint32_t magnitude = bits & 0x7fffffffu;
  // Below 2^-14 the result counts units of 2^-24. That is the last place of 0.5, so the addition
  // rounds.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude < 0x38800000u ? magnitude : 0u) +
                                   0.5f) -
      0x3f000000u;
  const std::uint32_t normal =
      (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - (std::uint32_t{127 - 15} << 23)) >> 13;
  const std::uint32_t nan = 0x7e00u | ((magnitude >> 13) & 0x3ffu);
  std::uint32_t half = magnitude < 0x38800000u ? denormal : normal;
  half = magnitude >= 0x477ff000u ? 0x7c00u : half;  // from 65520 on: halfway to 2^16
  half = magnitude > 0x7f800000u ? nan : half;
  return static_cast<std::uint16_t>(half | sign);
}

constexpr float bfloat16_to_float32(std::uint16_t upper) noexcept {
  const std::uint32_t bits = std::uint32_t{upper} << 16;
  const bool nan = (bits & 0x7fffffffu) > 0x7f800000u;
  return std::bit_cast<float>(bits | (nan ? 0x00400000u : 0u));
}

constexpr std::uint16_t float32_to_bfloat16(float value) noexcept {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
  const std::uint32_t nan = (bits >> 16) | 0x40u;
  return static_cast<std::uint16_t>((bits & 0x7fffffffu) > 0x7f800000u ? nan : rounded);
}

}  // namespace gradcube::aggregation

#endif  // GRADCUBE_AGGREGATION_ELEMENT_H_
