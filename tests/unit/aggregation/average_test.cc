// Averages of types that could overflow: the means of 16-bit floats, the checked sums of integers.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "aggregation/kernels.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {
namespace {

constexpr DataType kHalfFloats[] = {DataType::float16, DataType::bfloat16};
constexpr std::size_t kSourceCounts[] = {1, 2, 3, 4, 5, 7, 9, 16, 31, 100, 255, 256};

std::uint16_t small_infinity_of(DataType type) {
  return type == DataType::float16 ? 0x7c00 : 0x7f80;
}

std::uint16_t half(float value) { return float32_to_float16(value); }

// The average of `sources`, one array for each.
template <typename Element>
std::vector<Element> average(const Kernels& kernels, DataType type,
                             const std::vector<std::vector<Element>>& sources, bool& fits) {
  std::vector<const void*> addresses;
  for (const auto& source : sources) addresses.push_back(source.data());
  std::vector<Element> result(sources[0].size());
  fits = kernels.reduce(type, Operation::average)(result.data(), addresses.data(), sources.size(),
                                                  result.size());
  return result;
}

std::vector<std::uint16_t> mean(const Kernels& kernels, DataType type,
                                const std::vector<std::vector<std::uint16_t>>& sources) {
  bool fits = false;
  const auto result = average(kernels, type, sources, fits);
  EXPECT_TRUE(fits);
  return result;
}

class Average : public ::testing::Test {
 protected:
  std::uint64_t seed_ = test_seed();
  ::testing::ScopedTrace trace_{__FILE__, __LINE__, "GRADCUBE_TEST_SEED=" + std::to_string(seed_)};
};

TEST_F(Average, OfNineHalvesOf10000Is10000) {
  for (const Kernels* kernels : available_kernels()) {
    const std::vector<std::uint16_t> ten_thousand = {half(10000)};
    EXPECT_EQ(mean(*kernels, DataType::float16, {9, ten_thousand}), ten_thousand);
  }
}

// Denormals and the greatest finite numbers among them.
TEST_F(Average, OfEqualSmallFloatsIsTheirValue) {
  for (const DataType type : kHalfFloats) {
    std::vector<std::uint16_t> all;
    for (std::uint32_t bits = 0; bits <= 0xffff; ++bits) {
      const auto element = static_cast<std::uint16_t>(bits);
      if (!is_nan(type, element)) all.push_back(element);
    }
    for (const Kernels* kernels : available_kernels()) {
      for (const std::size_t source_count : kSourceCounts) {
        const std::vector<std::vector<std::uint16_t>> sources(source_count, all);
        ASSERT_EQ(mean(*kernels, type, sources), all) << source_count << " sources";
      }
    }
  }
}

TEST_F(Average, OfSmallFloatsLiesBetweenTheLeastAndTheGreatestOfThem) {
  std::mt19937_64 random(seed_);
  for (const DataType type : kHalfFloats) {
    for (const std::size_t source_count : kSourceCounts) {
      std::vector<std::vector<std::uint16_t>> sources(source_count);
      for (auto& source : sources) {
        while (source.size() < 2000) {
          const auto bits = static_cast<std::uint16_t>(random());
          // Half of the columns hold large numbers only, whose sum would overflow.
          const std::uint16_t large = source.size() % 2 == 0 ? 0x7000 : 0;
          const auto element = static_cast<std::uint16_t>(bits | large);
          if (is_finite(type, element)) source.push_back(element);
        }
      }
      for (const Kernels* kernels : available_kernels()) {
        const auto means = mean(*kernels, type, sources);
        for (std::size_t i = 0; i < means.size(); ++i) {
          double least = std::numeric_limits<double>::infinity();
          double greatest = -least;
          for (const auto& source : sources) {
            least = std::min(least, decode_small_float(type, source[i]));
            greatest = std::max(greatest, decode_small_float(type, source[i]));
          }
          const double value = decode_small_float(type, means[i]);
          ASSERT_TRUE(least <= value && value <= greatest)
              << value << " of " << source_count << " in " << least << " to " << greatest;
        }
      }
    }
  }
}

TEST_F(Average, OfSmallFloatsPassesInfinitiesAndNaNsOn) {
  for (const DataType type : kHalfFloats) {
    const std::uint16_t infinity = small_infinity_of(type);
    const auto nan = static_cast<std::uint16_t>(infinity | 1);
    for (const Kernels* kernels : available_kernels()) {
      EXPECT_EQ(mean(*kernels, type, {{1}, {infinity}, {2}})[0], infinity);
      EXPECT_EQ(mean(*kernels, type, {{1}, {static_cast<std::uint16_t>(infinity | 0x8000)}})[0],
                infinity | 0x8000);
      EXPECT_TRUE(is_quiet_nan(
          type,
          mean(*kernels, type, {{infinity}, {static_cast<std::uint16_t>(infinity | 0x8000)}})[0]));
      EXPECT_TRUE(is_quiet_nan(type, mean(*kernels, type, {{1}, {2}, {nan}})[0]));
    }
  }
}

// In every lane of a vector, in blocks, single vectors and tails, at every place among the sources.
template <typename Integer>
void expect_every_overflow_is_found(DataType type) {
  constexpr Integer kMost = std::numeric_limits<Integer>::max();
  constexpr Integer kLeast = std::numeric_limits<Integer>::min();
  for (const Kernels* kernels : available_kernels()) {
    for (const std::size_t source_count : {2, 3, 5}) {
      for (const std::size_t count : {1, 7, 16, 31, 100}) {
        std::vector<std::vector<Integer>> sources(source_count, std::vector<Integer>(count));
        bool fits = false;
        for (std::size_t i = 0; i < count; ++i) {
          for (std::size_t s = 1; s < source_count; ++s) {
            sources[s - 1][i] = kMost;
            average(*kernels, type, sources, fits);
            ASSERT_TRUE(fits);
            sources[s][i] = 1;
            average(*kernels, type, sources, fits);
            ASSERT_FALSE(fits) << "element " << i << " of " << count << ", source " << s;
            sources[s - 1][i] = kLeast;
            average(*kernels, type, sources, fits);
            ASSERT_TRUE(fits);
            sources[s][i] = -1;
            average(*kernels, type, sources, fits);
            ASSERT_FALSE(fits) << "element " << i << " of " << count << ", source " << s;
            sources[s - 1][i] = sources[s][i] = 0;
          }
        }
      }
    }
  }
}

TEST_F(Average, OfIntegersFindsEveryOverflow) {
  expect_every_overflow_is_found<std::int32_t>(DataType::int32);
  expect_every_overflow_is_found<std::int64_t>(DataType::int64);
}

TEST_F(Average, OfIntegersFailsWhereAPartialSumDoesNotFitThoughTheTotalWould) {
  constexpr std::int32_t kMost = std::numeric_limits<std::int32_t>::max();
  for (const Kernels* kernels : available_kernels()) {
    bool fits = true;
    average<std::int32_t>(*kernels, DataType::int32, {{kMost}, {1}, {-5}}, fits);
    EXPECT_FALSE(fits);
    average<std::int32_t>(*kernels, DataType::int32, {{kMost}, {-5}, {1}}, fits);
    EXPECT_TRUE(fits);
  }
}

TEST_F(Average, OfIntegersThatFitIsTheirExactSumThenTheTruncatedQuotient) {
  constexpr std::int32_t kLeast = std::numeric_limits<std::int32_t>::min();
  for (const Kernels* kernels : available_kernels()) {
    bool fits = false;
    const std::vector<std::vector<std::int32_t>> sources = {{7, -7, kLeast}, {1, -1, 0}, {0, 0, 0}};
    auto result = average(*kernels, DataType::int32, sources, fits);
    EXPECT_TRUE(fits);
    EXPECT_EQ(result, (std::vector<std::int32_t>{8, -8, kLeast}));
    kernels->divide(DataType::int32)(result.data(), result.size(), 3);
    EXPECT_EQ(result, (std::vector<std::int32_t>{2, -2, -715827882}));
  }
}

TEST_F(Average, IsTheOnlyOperationThatReportsAnOverflow) {
  const std::int64_t most = std::numeric_limits<std::int64_t>::max();
  const void* sources[] = {&most, &most};
  std::int64_t result = 0;
  for (const Kernels* kernels : available_kernels()) {
    EXPECT_TRUE(kernels->reduce(DataType::int64, Operation::sum)(&result, sources, 2, 1));
    EXPECT_EQ(result, -2);
    EXPECT_FALSE(kernels->reduce(DataType::int64, Operation::average)(&result, sources, 2, 1));
  }
}

}  // namespace
}  // namespace gradcube::aggregation::test
