#include "cli/measure/perf_inputs.h"

#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace gradcube::cli {
namespace {

using aggregation::DataType;
using aggregation::Operation;

TEST(PerfInputs, AreTheSameWhereverTheReadingBegins) {
  std::vector<float> whole(100), part(30);
  fill_input(DataType::float32, Operation::sum, 3, 5, 0, whole.size(), whole.data());
  fill_input(DataType::float32, Operation::sum, 3, 5, 40, part.size(), part.data());
  EXPECT_EQ(std::vector<float>(whole.begin() + 40, whole.begin() + 70), part);
}

TEST(PerfInputs, DifferBetweenServersAndSeeds) {
  std::set<std::vector<std::int64_t>> all;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint32_t server = 0; server < 10; ++server) {
      std::vector<std::int64_t> values(4);
      fill_input(DataType::int64, Operation::sum, seed, server, 0, values.size(), values.data());
      all.insert(values);
    }
  }
  EXPECT_EQ(all.size(), 100u);
}

TEST(PerfInputs, OfFloatsAreFiniteAndOfBothSigns) {
  std::vector<double> wide(10000);
  fill_input(DataType::float64, Operation::sum, 1, 0, 0, wide.size(), wide.data());
  std::vector<std::uint16_t> narrow(10000);
  fill_input(DataType::float16, Operation::sum, 1, 0, 0, narrow.size(), narrow.data());
  int negative = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_TRUE(std::isfinite(wide[i]));
    ASSERT_LT(std::abs(aggregation::float16_to_float32(narrow[i])), 16.0f);
    negative += std::signbit(wide[i]) ? 1 : 0;
  }
  EXPECT_GT(negative, 4000);
  EXPECT_LT(negative, 6000);
}

// Otherwise `perf --check` could not tell a mean from a sum that overflows and is then divided.
TEST(PerfInputs, OfSmallFloatAveragesAreFiniteAndOverflowAsASum) {
  for (const DataType type : {DataType::float16, DataType::bfloat16}) {
    const auto widen = type == DataType::float16 ? aggregation::float16_to_float32
                                                 : aggregation::bfloat16_to_float32;
    const double limit = type == DataType::float16 ? 65504 : 0x1.fep127;
    std::vector<std::uint16_t> values(10000);
    fill_input(type, Operation::average, 1, 0, 0, values.size(), values.data());
    int large = 0;
    for (const std::uint16_t value : values) {
      ASSERT_TRUE(std::isfinite(widen(value)));
      large += std::abs(widen(value)) > limit / 3 ? 1 : 0;
    }
    EXPECT_GT(large, 1000);
  }
}

TEST(PerfInputs, OfSmallIntegersHaveAllValuesAndStayInTheirArray) {
  for (const DataType type : {DataType::int8, DataType::uint8, DataType::int16}) {
    std::vector<std::uint8_t> values(10'001, 0x5a);
    const std::size_t count = (values.size() - 1) / aggregation::element_bytes(type);
    fill_input(type, Operation::sum, 1, 0, 0, count, values.data());
    EXPECT_EQ(std::set<std::uint8_t>(values.begin(), values.end()).size(), 256u);
    EXPECT_EQ(values.back(), 0x5a);
  }
}

TEST(PerfInputs, OfIntegerAveragesLeaveRoomForTheSumOver65536Servers) {
  std::vector<std::int32_t> narrow(10000);
  fill_input(DataType::int32, Operation::average, 1, 0, 0, narrow.size(), narrow.data());
  std::vector<std::int64_t> wide(10000);
  fill_input(DataType::int64, Operation::average, 1, 0, 0, wide.size(), wide.data());
  std::int64_t greatest = 0;
  for (std::size_t i = 0; i < narrow.size(); ++i) {
    ASSERT_LE(std::abs(std::int64_t{narrow[i]}), std::int64_t{1} << 15);
    ASSERT_LE(std::abs(wide[i]), std::int64_t{1} << 47);
    greatest = std::max(greatest, wide[i]);
  }
  EXPECT_GT(greatest, std::int64_t{1} << 46);
}

}  // namespace
}  // namespace gradcube::cli
