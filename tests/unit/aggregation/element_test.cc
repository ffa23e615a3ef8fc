#include "aggregation/element.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <gtest/gtest.h>
#include <iterator>
#include <limits>
#include <set>

#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

struct SmallFloat {
  DataType type;
  float (*widen)(std::uint16_t) noexcept;
  std::uint16_t (*round)(float) noexcept;
};

constexpr SmallFloat kSmallFloats[] = {
    {DataType::float16, float16_to_float32, float32_to_float16},
    {DataType::bfloat16, bfloat16_to_float32, float32_to_bfloat16},
};

TEST(Element, HasTheSizeOfItsType) {
  EXPECT_EQ(element_bytes(DataType::float32), sizeof(float));
  EXPECT_EQ(element_bytes(DataType::float64), sizeof(double));
  EXPECT_EQ(element_bytes(DataType::float16), 2u);
  EXPECT_EQ(element_bytes(DataType::bfloat16), 2u);
  EXPECT_EQ(element_bytes(DataType::int32), 4u);
  EXPECT_EQ(element_bytes(DataType::int64), 8u);
  EXPECT_EQ(element_bytes(DataType::int8), 1u);
  EXPECT_EQ(element_bytes(DataType::uint8), 1u);
  EXPECT_EQ(element_bytes(DataType::int16), 2u);
  EXPECT_EQ(element_bytes(DataType::bytes), 1u);
  EXPECT_EQ(element_bytes(DataType::sum128), 16u);
  EXPECT_EQ(element_bytes(static_cast<DataType>(11)), 0u);
}

TEST(Element, NamesOfTypesAndOperationsParseBack) {
  for (const DataType type : kPlainTypes) {
    EXPECT_EQ(parse_data_type(data_type_name(type)), type);
  }
  for (const Operation operation : kAllOperations) {
    EXPECT_EQ(parse_operation(operation_name(operation)), operation);
  }
  EXPECT_EQ(data_type_name(DataType::bfloat16), "bfloat16");
  EXPECT_EQ(data_type_name(DataType::uint8), "uint8");
  EXPECT_EQ(data_type_name(DataType::bytes), "bytes");
  EXPECT_EQ(operation_name(Operation::average), "average");
}

TEST(Element, EveryTypeHasEveryOperationButSmallIntegersAnAverageAndBytesAny) {
  ASSERT_EQ(kPlainTypes.size(), 10u);
  ASSERT_EQ(std::size(kAllOperations), kOperations);
  for (const DataType type : kPlainTypes) {
    const bool small = type == DataType::int16 || type == DataType::int8 || type == DataType::uint8;
    for (const Operation operation : kAllOperations) {
      EXPECT_EQ(supports(type, operation),
                type != DataType::bytes && !(small && operation == Operation::average))
          << data_type_name(type) << ' ' << operation_name(operation);
    }
    EXPECT_FALSE(supports(type, static_cast<Operation>(kOperations)));
  }
  EXPECT_FALSE(supports(static_cast<DataType>(11), Operation::sum));
  EXPECT_FALSE(supports(static_cast<DataType>(255), static_cast<Operation>(255)));
}

TEST(Element, TypesThatNoKernelKnowsAreCombinedAsTheirParts) {
  EXPECT_EQ(data_type_name(kTruth), "bool");
  EXPECT_EQ(data_type_name(kComplex64), "complex64");
  EXPECT_EQ(data_type_name(kComplex128), "complex128");
  EXPECT_EQ(element_bytes(kComplex128), 16u);
  for (std::size_t number = 0; number < 256; ++number) {
    const auto type = static_cast<DataType>(number);
    const bool is_named = number < 9 || (number >= 16 && number < 28);
    EXPECT_EQ(is_data_type(number), is_named);
    if (number > 10) {
      EXPECT_EQ(element_bytes(type) != 0, is_named);
      EXPECT_EQ(data_type_name(type) != "?", is_named);
    }
    const bool is_complex = type == kComplex64 || type == kComplex128;
    if (number > 10) {
      const bool has_order = type == kTruth || type == DataType::int16;
      EXPECT_EQ(supports(type, Operation::sum), is_complex || has_order);
      EXPECT_EQ(supports(type, Operation::average), is_complex);
      EXPECT_EQ(supports(type, Operation::max), has_order);
    }
    EXPECT_EQ(element_bytes(type), parts_of(type).count * element_bytes(parts_of(type).type));
  }
  EXPECT_EQ(operation_on_parts(kTruth, Operation::sum), Operation::max);
  EXPECT_EQ(operation_on_parts(kComplex64, Operation::sum), Operation::sum);
  EXPECT_FALSE(differ(kComplex64, kComplex64) || differ(kComplex64, DataType::bytes));
  EXPECT_TRUE(differ(kComplex64, DataType::float64));
}

// A frame has four bits for the type of what is added.
TEST(Element, TypesThatAreAddedHaveNumbersOfFourBitsOfTheirOwn) {
  std::set<unsigned> numbers;
  for (const ElementType& row : kElementTypes) {
    if (row.operations == kMoved) continue;
    EXPECT_LT(row.when_added, 16) << row.name;
    EXPECT_TRUE(numbers.insert(row.when_added).second) << row.name;
  }
  EXPECT_EQ(element_type(kTruth).when_added, 11);
  EXPECT_EQ(element_type(kComplex64).when_added, 12);
  EXPECT_EQ(element_type(kComplex128).when_added, 13);
}

TEST(Element, UnknownNamesAndNumbersAreToldApart) {
  EXPECT_EQ(parse_data_type("float"), std::nullopt);
  EXPECT_EQ(parse_data_type(""), std::nullopt);
  EXPECT_EQ(parse_data_type("?"), std::nullopt);
  EXPECT_EQ(parse_operation("Sum"), std::nullopt);
  EXPECT_EQ(data_type_name(static_cast<DataType>(255)), "?");
  EXPECT_EQ(operation_name(static_cast<Operation>(4)), "?");
}

TEST(SmallFloats, EveryPatternWidensToItsValueAndRoundsBackToItself) {
  for (const SmallFloat& small : kSmallFloats) {
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto element = static_cast<std::uint16_t>(bits);
      const float wide = small.widen(element);
      if (is_nan(small.type, element)) {
        ASSERT_TRUE(std::isnan(wide)) << bits;
        ASSERT_TRUE(is_quiet_nan(DataType::float32, std::bit_cast<std::uint32_t>(wide))) << bits;
        ASSERT_TRUE(is_quiet_nan(small.type, small.round(wide))) << bits;
        ASSERT_EQ(std::signbit(wide), (element & 0x8000) != 0) << bits;
        continue;
      }
      const double value = decode_small_float(small.type, element);
      ASSERT_EQ(static_cast<double>(wide), value) << bits;
      ASSERT_EQ(std::signbit(wide), std::signbit(value)) << bits;
      ASSERT_EQ(small.round(wide), element) << bits;
    }
  }
}

// Between any two neighbours: the middle, and what lies next to it and next to the neighbours.
TEST(SmallFloats, RoundToTheNearestNeighbourAndTiesToEven) {
  const float infinity = std::numeric_limits<float>::infinity();
  for (const SmallFloat& small : kSmallFloats) {
    const std::uint16_t last = small.round(infinity);
    for (std::uint16_t bits = 0; bits < last; ++bits) {
      const double below = decode_small_float(small.type, bits);
      const double place =
          bits + 1 < last
              ? decode_small_float(small.type, static_cast<std::uint16_t>(bits + 1)) - below
              : below - decode_small_float(small.type, static_cast<std::uint16_t>(bits - 1));
      const auto middle = static_cast<float>(below + place / 2);
      for (const float value :
           {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, infinity),
            std::nextafter(static_cast<float>(below), infinity),
            std::nextafter(static_cast<float>(below + place), 0.0f)}) {
        ASSERT_EQ(small.round(value), encode_small_float(small.type, value)) << bits;
        ASSERT_EQ(small.round(-value), encode_small_float(small.type, -value)) << bits;
      }
    }
  }
}

TEST(SmallFloats, KnownRoundingsHold) {
  EXPECT_EQ(float32_to_float16(65519.996f), 0x7bff);
  EXPECT_EQ(float32_to_float16(65520.0f), 0x7c00);
  EXPECT_EQ(float32_to_float16(-1e30f), 0xfc00);
  EXPECT_EQ(float32_to_float16(0x1p-25f), 0x0000);
  EXPECT_EQ(float32_to_float16(0x1.000002p-25f), 0x0001);
  EXPECT_EQ(float32_to_float16(-0x1p-149f), 0x8000);
  EXPECT_EQ(float32_to_float16(1.0f + 0x1p-11f), 0x3c00);
  EXPECT_EQ(float32_to_float16(1.0f + 0x3p-11f), 0x3c02);
  EXPECT_EQ(float32_to_bfloat16(1.0f + 0x1p-8f), 0x3f80);
  EXPECT_EQ(float32_to_bfloat16(1.0f + 0x3p-8f), 0x3f82);
  EXPECT_EQ(float32_to_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
  EXPECT_EQ(float32_to_bfloat16(0x1p-149f), 0x0000);
  EXPECT_EQ(float32_to_bfloat16(0x1p-133f), 0x0001);
}

TEST(SmallFloats, ANanNeverRoundsToAnInfinity) {
  for (const std::uint32_t bits : {0x7f800001u, 0xff800001u, 0x7fffffffu, 0x7f801000u}) {
    const auto nan = std::bit_cast<float>(bits);
    EXPECT_TRUE(is_quiet_nan(DataType::float16, float32_to_float16(nan))) << bits;
    EXPECT_TRUE(is_quiet_nan(DataType::bfloat16, float32_to_bfloat16(nan))) << bits;
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
