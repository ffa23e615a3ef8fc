#include "dataplane/daemon/resident_memory.h"

#include <chrono>
#include <gtest/gtest.h>

namespace gradcube::dataplane {
namespace {

using std::chrono::milliseconds;

TEST(CostlyNumber, IsReadAtMostOnceInASecondAndRarelyWhereItTakesLong) {
  CostlyNumber::Time now{};
  milliseconds takes{0};
  std::uint64_t reads = 0;
  CostlyNumber number(
      [&] {
        now += takes;
        return ++reads;
      },
      [&] { return now; });
  EXPECT_EQ(number.value(), 1u);
  now += milliseconds(999);
  EXPECT_EQ(number.value(), 1u);
  now += milliseconds(1);
  takes = milliseconds(50);
  EXPECT_EQ(number.value(), 2u);
  now += milliseconds(4'999);
  EXPECT_EQ(number.value(), 2u);
  now += milliseconds(1);
  EXPECT_EQ(number.value(), 3u);
}

TEST(OwnResidentBytes, AreMoreThanNone) { EXPECT_GT(own_resident_bytes(), 100'000u); }

}  // namespace
}  // namespace gradcube::dataplane
