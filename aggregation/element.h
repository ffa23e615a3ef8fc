// The element types that a collective or a message may carry, the operations that combine elements,
// which operation fits which type, and the scalar conversions of the two 16-bit floats. What is
// known of a type is its row in kElementTypes.
//
// The numbers of both enumerations are those of trainer/include/gradcube/gradcube.h. They cross
// process and host boundaries. Compare a number from a ring or a packet by is_data_type() or with
// kOperations before you cast it, and check the pair with supports(). The names are those of
// command lines and reports ("float32", "sum").
//
// All functions here are pure. Any thread may call them.
#ifndef GRADCUBE_AGGREGATION_ELEMENT_H_
#define GRADCUBE_AGGREGATION_ELEMENT_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string_view>

namespace gradcube::aggregation {

// The types that code names. kElementTypes has all.
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
  int16 = 17,
};
inline constexpr DataType kTruth{16};
inline constexpr DataType kComplex64{22};
inline constexpr DataType kComplex128{23};

enum class Operation : std::uint8_t {
  sum = 0,
  average = 1,  // the mean of all trainers' values: docs/arithmetic.md
  min = 2,
  max = 3,
};
inline constexpr std::size_t kOperations = 4;

// Which operations combine elements of a type: a bit for each.
constexpr std::uint8_t bit_of(Operation operation) {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(operation));
}
inline constexpr std::uint8_t kMoved = 0;  // none
inline constexpr std::uint8_t kAdded = bit_of(Operation::sum);
// A sum of a few such numbers does not fit in the type any more.
inline constexpr std::uint8_t kWithoutAverage =
    kAdded | bit_of(Operation::min) | bit_of(Operation::max);
inline constexpr std::uint8_t kWithoutOrder = kAdded | bit_of(Operation::average);
inline constexpr std::uint8_t kByAll = kWithoutAverage | kWithoutOrder;

// How a kernel sees elements that consist of others: a complex number as its two parts, and truth
// as a byte of 0 or 1, of which the greatest is "or".
struct Parts {
  DataType type{};
  unsigned count = 1;
  bool sum_is_max = false;
};

// What is known of a type outside kernels.
struct ElementType {
  std::uint8_t number = 0;
  std::string_view name = "?";  // of command lines; "?": no trainer names it
  std::uint8_t bytes = 0;       // of an element
  std::uint8_t operations = kMoved;
  std::uint8_t when_added = 0;  // its number in frames whose segments are added: of four bits
  Parts parts{.count = 0};      // of a type that no kernel knows; a count of 0: it has none
};

// In the order of their numbers. One that is only moved has a number so that it is seen if trainers
// name different types.
inline constexpr ElementType kElementTypes[] = {
    {0, "float32", 4, kByAll, 0},
    {1, "float64", 8, kByAll, 1},
    {2, "float16", 2, kByAll, 2},
    {3, "bfloat16", 2, kByAll, 3},
    {4, "int32", 4, kByAll, 4},
    {5, "int64", 8, kByAll, 5},
    {6, "int8", 1, kWithoutAverage, 6},
    {7, "uint8", 1, kWithoutAverage, 7},
    {8, "bytes", 1, kMoved},
    {9, "?", 8, kAdded, 9},
    {10, "?", 16, kAdded, 10},
    {16, "bool", 1, kWithoutAverage, 11, {DataType::uint8, 1, true}},
    {17, "int16", 2, kWithoutAverage, 14},
    {18, "uint16", 2, kMoved},
    {19, "uint32", 4, kMoved},
    {20, "uint64", 8, kMoved},
    {21, "complex32", 4, kMoved},
    {22, "complex64", 8, kWithoutOrder, 12, {DataType::float32, 2}},
    {23, "complex128", 16, kWithoutOrder, 13, {DataType::float64, 2}},
    {24, "float8_e4m3fn", 1, kMoved},
    {25, "float8_e4m3fnuz", 1, kMoved},
    {26, "float8_e5m2", 1, kMoved},
    {27, "float8_e5m2fnuz", 1, kMoved},
};
inline constexpr std::size_t kTypeNumbers = std::rbegin(kElementTypes)->number + std::size_t{1};
// From here on a number takes more than four bits.
inline constexpr std::size_t kFirstWideNumber = 16;

// The row of a type; that of no type for a value that has none.
inline constexpr std::array<ElementType, kTypeNumbers + 1> kTypesByNumber = [] {
  std::array<ElementType, kTypeNumbers + 1> rows{};
  for (const ElementType& row : kElementTypes) rows[row.number] = row;
  return rows;
}();
constexpr const ElementType& element_type(DataType type) noexcept {
  const auto number = static_cast<std::size_t>(type);
  return kTypesByNumber[number < kTypeNumbers ? number : kTypeNumbers];
}

// Whether a trainer may name the type of this number.
constexpr bool is_data_type(std::size_t number) noexcept {
  return number < kTypeNumbers && kTypesByNumber[number].name != "?";
}

// Types that trainers name and kernels know, and bytes.
constexpr bool is_plain(const ElementType& row) noexcept {
  return row.name != "?" && row.parts.count == 0 &&
         (row.operations != kMoved || DataType{row.number} == DataType::bytes);
}
inline constexpr std::size_t kPlainTypeCount =
    std::size_t(std::count_if(std::begin(kElementTypes), std::end(kElementTypes), is_plain));
inline constexpr std::array<DataType, kPlainTypeCount> kPlainTypes = [] {
  std::array<DataType, kPlainTypeCount> types{};
  std::size_t count = 0;
  for (const ElementType& row : kElementTypes) {
    if (is_plain(row)) types[count++] = DataType{row.number};
  }
  return types;
}();

// Whether trainers that exchange data mean different things by it. Bytes may be anything.
constexpr bool differ(DataType one, DataType other) noexcept {
  return one != other && one != DataType::bytes && other != DataType::bytes;
}

// The size of one element in bytes. 0 for a value that is no type.
constexpr std::size_t element_bytes(DataType type) noexcept { return element_type(type).bytes; }

constexpr Parts parts_of(DataType type) noexcept {
  const Parts& parts = element_type(type).parts;
  return parts.count == 0 ? Parts{type} : parts;
}
// What a kernel does with the parts.
constexpr Operation operation_on_parts(DataType type, Operation operation) noexcept {
  return parts_of(type).sum_is_max && operation == Operation::sum ? Operation::max : operation;
}

// Whether elements of the type can be combined by the operation. False for values that are no type
// or no operation.
constexpr bool supports(DataType type, Operation operation) noexcept {
  return static_cast<std::size_t>(operation) < kOperations &&
         (element_type(type).operations & bit_of(operation)) != 0;
}

// "float32"..., "sum"...; "?" for a value outside the enumeration.
std::string_view data_type_name(DataType type) noexcept;
std::string_view operation_name(Operation operation) noexcept;

// The reverse, of kPlainTypes and of operations. Names must match exactly.
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
