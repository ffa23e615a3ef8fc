#include "cli/text/units_text.h"

#include <gtest/gtest.h>

namespace gradcube::cli {
namespace {

TEST(HumanNumbers, AreShortAndDecimal) {
  EXPECT_EQ(human_bytes(0), "0 B");
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(12500000), "12.5 MB");
  EXPECT_EQ(human_bytes(1e15), "1000 TB");
  EXPECT_EQ(exact_bytes(64'000'000), "64 MB");
  EXPECT_EQ(exact_bytes(10'239), "10.2 KB (10,239 bytes)");
  EXPECT_EQ(human_rate(200e6), "200 Mbit/s");
  EXPECT_EQ(human_seconds(0.00123), "1.23 ms");
  EXPECT_EQ(human_seconds(125), "2 min 5 s");
  EXPECT_EQ(human_seconds(7265), "2 h 1 min");
  EXPECT_EQ(human_seconds(9e14), "250000000000 h 0 min");
  EXPECT_EQ(human_seconds(1e15), "1e+15 s");
  EXPECT_EQ(human_seconds(1.234e21), "1.23e+21 s");
  EXPECT_EQ(grouped(0), "0");
  EXPECT_EQ(grouped(999), "999");
  EXPECT_EQ(grouped(1234567), "1,234,567");
}

}  // namespace
}  // namespace gradcube::cli
