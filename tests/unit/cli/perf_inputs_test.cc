#include "cli/perf_inputs.h"

#include <cmath>
#include <gtest/gtest.h>
#include <set>
#include <vector>

namespace gradcube::cli {
namespace {

using aggregation::DataType;

TEST(PerfInputs, AreTheSameWhereverTheReadingBegins) {
  std::vector<float> whole(100), part(30);
  fill_input(DataType::float32, 3, 5, 0, whole.size(), whole.data());
  fill_input(DataType::float32, 3, 5, 40, part.size(), part.data());
  EXPECT_EQ(std::vector<float>(whole.begin() + 40, whole.begin() + 70), part);
}

TEST(PerfInputs, DifferBetweenServersAndSeeds) {
  std::set<std::vector<std::int64_t>> all;
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    for (std::uint32_t server = 0; server < 10; ++server) {
      std::vector<std::int64_t> values(4);
      fill_input(DataType::int64, seed, server, 0, values.size(), values.data());
      all.insert(values);
    }
  }
  EXPECT_EQ(all.size(), 100u);
}

TEST(PerfInputs, OfFloatsAreFiniteAndOfBothSigns) {
  std::vector<double> wide(10000);
  fill_input(DataType::float64, 1, 0, 0, wide.size(), wide.data());
  std::vector<std::uint16_t> narrow(10000);
  fill_input(DataType::float16, 1, 0, 0, narrow.size(), narrow.data());
  int negative = 0;
  for (std::size_t i = 0; i < wide.size(); ++i) {
    ASSERT_TRUE(std::isfinite(wide[i]));
    ASSERT_LT(std::abs(aggregation::float16_to_float32(narrow[i])), 16.0f);
    negative += std::signbit(wide[i]) ? 1 : 0;
  }
  EXPECT_GT(negative, 4000);
  EXPECT_LT(negative, 6000);
}

}  // namespace
}  // namespace gradcube::cli
