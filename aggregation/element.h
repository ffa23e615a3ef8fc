// What a gradient is made of: the element types a collective may carry, the operations that combine
// them, and the scalar conversions of the two 16-bit floats.
//
// The numbers of both enumerations are those of trainer/include/gradcube/gradcube.h and cross process and host
// boundaries; a number from a ring or a packet is compared with kDataTypes / kOperations before it
// is cast. Names are those of command lines and reports ("float32", "sum").
//
// Everything here is pure and may be called from any thread.
#ifndef GRADCUBE_AGGREGATION_ELEMENT_H_
#define GRADCUBE_AGGREGATION_ELEMENT_H_

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
};
inline constexpr std::size_t kDataTypes = 6;

enum class Operation : std::uint8_t {
  sum = 0,
  average = 1,  // the sum, then divided once by the number of trainers
  min = 2,
  max = 3,
};
inline constexpr std::size_t kOperations = 4;

// The size of one element; 0 for a value that is no DataType.
std::size_t element_bytes(DataType type) noexcept;

// "float32"..., "sum"...; "?" for a value outside the enumeration.
std::string_view data_type_name(DataType type) noexcept;
std::string_view operation_name(Operation operation) noexcept;

// The reverse; names are matched exactly.
std::optional<DataType> parse_data_type(std::string_view name) noexcept;
std::optional<Operation> parse_operation(std::string_view name) noexcept;

// Conversions. To float32 they are exact. From float32 they round to nearest, ties to even;
// denormals are kept in both directions, what exceeds the range becomes an infinity, and a NaN
// stays a NaN, made quiet, with its sign and the payload's upper bits. They hold under any FTZ/DAZ
// setting of the calling thread, since no denormal float32 is an operand or a result of their
// arithmetic unless it rounds to zero anyway.

constexpr float float16_to_float32(std::uint16_t half) noexcept {
  constexpr std::uint32_t kRebias = std::uint32_t{127 - 15} << 23;
  const std::uint32_t sign = (std::uint32_t{half} & 0x8000u) << 16;
  const std::uint32_t shifted = (std::uint32_t{half} & 0x7fffu) << 13;
  const std::uint32_t exponent = shifted & 0x0f800000u;
  // A denormal is its mantissa behind an implicit one, less that one: exact, and no loop over bits.
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
  // Below 2^-14 the result counts units of 2^-24, the last place of 0.5: the addition rounds.
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
