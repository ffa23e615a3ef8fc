#include <bit>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "tests/unit/aggregation/arrays.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

constexpr DataType kDividedTypes[] = {DataType::float32, DataType::float64, DataType::int32,
                                      DataType::int64};
constexpr std::uint32_t kDivisors[] = {1, 2, 3, 7, 9, 64, 1000, 16777216, 0x7fffffff, 0xffffffff};

void check_divide(const Kernels& kernels, DataType type, const std::vector<Bits>& elements,
                  std::uint32_t divisor, std::size_t misalignment) {
  SCOPED_TRACE(std::string(instruction_set_name(kernels.instruction_set)) + " " +
               std::string(data_type_name(type)) + " / " + std::to_string(divisor));
  GuardedArray array(type, elements, misalignment);
  kernels.divide(type)(array.data(), elements.size(), divisor);
  for (std::size_t i = 0; i < elements.size(); ++i) {
    const Bits expected = oracle_divide(type, elements[i], divisor);
    const Bits actual = element_at(type, array.data(), i);
    ASSERT_TRUE(agrees(type, Operation::average, expected, actual))
        << std::hex << elements[i] << " gives " << actual << ", not " << expected;
  }
  ASSERT_TRUE(array.guards_are_intact());
}

class Divide : public ::testing::Test {
 protected:
  std::uint64_t seed_ = test_seed();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(Divide, EveryKernelAgreesWithTheOracleAtEveryLength) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : kDividedTypes) {
      std::mt19937_64 random(seed_);
      for (std::size_t count = 0; count <= 257; ++count) {
        std::vector<Bits> elements(count);
        for (Bits& element : elements) element = random_element(type, random);
        check_divide(*kernels, type, elements, kDivisors[count % std::size(kDivisors)],
                     count % 2 == 0 ? 0 : count % 64);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Divide, SpecialElementsFollowTheRules) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : kDividedTypes) {
      for (const std::uint32_t divisor : kDivisors) {
        check_divide(*kernels, type, special_elements(type), divisor, 0);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_F(Divide, SmallFloatsHaveNoDivisionBecauseEveryReduceReturnsTheirMean) {
  for (const Kernels* kernels : available_kernels()) {
    EXPECT_EQ(kernels->divide(DataType::float16), nullptr);
    EXPECT_EQ(kernels->divide(DataType::bfloat16), nullptr);
  }
}

TEST_F(Divide, IntegersTruncateTowardZeroNextToEveryMultiple) {
  for (const Kernels* kernels : available_kernels()) {
    for (const DataType type : {DataType::int32, DataType::int64}) {
      for (const std::int64_t divisor : {3, 9, 1000003, 2147483647}) {
        std::vector<Bits> elements;
        const std::int64_t greatest = std::numeric_limits<std::int32_t>::max() / divisor;
        for (const std::int64_t quotient : {std::int64_t{0}, std::int64_t{1}, greatest}) {
          for (const std::int64_t step : {-1, 0, 1}) {
            for (const std::int64_t value :
                 {quotient * divisor + step, -(quotient * divisor + step)}) {
              const auto bits = static_cast<Bits>(value);
              elements.push_back(type == DataType::int32 ? bits & 0xffffffffu : bits);
            }
          }
        }
        check_divide(*kernels, type, elements, static_cast<std::uint32_t>(divisor), 0);
        if (HasFatalFailure()) return;
      }
    }
  }
}

// 5 * (1.0f / 5) in float32 is 1, but 41 * (1.0f / 41) is not.
TEST_F(Divide, AFloatIsNotMultipliedByAReciprocal) {
  for (const Kernels* kernels : available_kernels()) {
    float value = 41.0f;
    kernels->divide(DataType::float32)(&value, 1, 41);
    EXPECT_EQ(value, 1.0f);
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
