// Kernels that leave work out: they touch nothing, or add and step nothing.
#include "aggregation/partial_kernels.h"

#include <array>
#include <bit>
#include <gtest/gtest.h>
#include <vector>

#include "aggregation/element.h"

namespace gradcube::aggregation {
namespace {

constexpr std::size_t kCount = 100;
constexpr DataType kTypes[] = {DataType::float32, DataType::float16, DataType::bfloat16};
constexpr InstructionSet kSets[] = {InstructionSet::scalar, InstructionSet::avx2,
                                    InstructionSet::avx512};

std::vector<std::uint8_t> values(DataType type, float value) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i < kCount; ++i) {
    const std::uint32_t bits = type == DataType::float32   ? std::bit_cast<std::uint32_t>(value)
                               : type == DataType::float16 ? float32_to_float16(value)
                                                           : float32_to_bfloat16(value);
    for (std::size_t b = 0; b < element_bytes(type); ++b) {
      bytes.push_back(static_cast<std::uint8_t>(bits >> 8 * b));
    }
  }
  return bytes;
}

template <typename Use>
void for_each_form(const Use& use) {
  for (std::size_t rule = 0; rule < kOptimizerRules; ++rule) {
    for (const bool limits : {false, true}) {
      for (const bool decays : {false, true}) {
        use(OptimizerForm{static_cast<OptimizerRule>(rule), limits, decays});
      }
    }
  }
}

TEST(IdleKernels, LeaveTheResultAsItIs) {
  for (std::size_t t = 0; t < kElementTypes; ++t) {
    const auto type = static_cast<DataType>(t);
    std::array<std::uint8_t, 64> result{};
    result.fill(7);
    const std::array<std::uint8_t, 64> ones = {1};
    const void* const sources[] = {ones.data(), ones.data()};
    for (std::size_t o = 0; o < kOperations; ++o) {
      EXPECT_TRUE(
          idle_kernels().reduce(type, static_cast<Operation>(o))(result.data(), sources, 2, 4));
    }
    idle_kernels().divide(type)(result.data(), 4, 3);
    for (const std::uint8_t byte : result) EXPECT_EQ(byte, 7);
  }
}

TEST(IdleOptimizers, LeaveWeightsAndStateAsTheyAre) {
  const std::vector<float> before(kCount, 3);
  for (const DataType type : kTypes) {
    for_each_form([&](OptimizerForm form) {
      std::vector<float> weights = before, first = before, second = before;
      std::vector<std::uint8_t> rounded = values(type, 3);
      const std::vector<std::uint8_t> gradients = values(type, 1);
      const void* const sources[] = {gradients.data()};
      idle_optimizers().optimize(type, form)(
          {weights.data(), first.data(), second.data(), rounded.data()}, sources, 1, kCount,
          OptimizerStep{});
      EXPECT_EQ(weights, before);
      EXPECT_EQ(first, before);
      EXPECT_EQ(second, before);
      EXPECT_EQ(rounded, values(type, 3));
    });
  }
}

TEST(AddingOptimizers, PutTheSumInThePlaceOfTheWeights) {
  for (const InstructionSet set : kSets) {
    if (kernels_for(set) == nullptr) continue;
    EXPECT_EQ(adding_optimizers(set).instruction_set, set);
    for (const DataType type : kTypes) {
      for_each_form([&](OptimizerForm form) {
        std::vector<float> weights(kCount, 3);
        std::vector<std::uint8_t> rounded = values(type, 3);
        const std::vector<std::uint8_t> one = values(type, 1), two = values(type, 2);
        const void* const sources[] = {one.data(), two.data(), two.data()};
        adding_optimizers(set).optimize(type, form)(
            {weights.data(), nullptr, nullptr, rounded.data()}, sources, 3, kCount,
            OptimizerStep{});
        const bool whole = type == DataType::float32;
        EXPECT_EQ(weights, std::vector<float>(kCount, whole ? 5.0F : 3.0F));
        EXPECT_EQ(rounded, values(type, whole ? 3.0F : 5.0F));
      });
    }
  }
}

}  // namespace
}  // namespace gradcube::aggregation
