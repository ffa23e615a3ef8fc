#include "protocol/rtt.h"

#include <gtest/gtest.h>

#include "tests/unit/protocol/link.h"

namespace gradcube::protocol {
namespace {

constexpr Nanoseconds kInitial = 100 * kMicrosecond;

TEST(RttEstimator, StandsOnTheInitialValueUntilTheFirstSample) {
  RttEstimator rtt(kInitial);
  EXPECT_FALSE(rtt.measured());
  EXPECT_EQ(rtt.smoothed(), kInitial);
  EXPECT_EQ(rtt.minimum(), kInitial);
  rtt.add(7 * kInitial, kSecond);
  EXPECT_TRUE(rtt.measured());
  EXPECT_EQ(rtt.smoothed(), 7 * kInitial);
  EXPECT_EQ(rtt.minimum(), 7 * kInitial);
}

TEST(RttEstimator, AShorterSampleIsTheMinimumAtOnce) {
  RttEstimator rtt(kInitial);
  rtt.add(50, 0);
  rtt.add(40, 1);
  EXPECT_EQ(rtt.minimum(), 40);
  rtt.add(45, 2);
  EXPECT_EQ(rtt.minimum(), 40);
}

TEST(RttEstimator, ASampleStaysTheMinimumForFiveToTenSeconds) {
  for (const Nanoseconds shortest_at : {Nanoseconds{0}, 4 * kSecond}) {
    RttEstimator rtt(kInitial);
    rtt.add(50, 0);
    rtt.add(10, shortest_at);
    Nanoseconds now = shortest_at;
    const Nanoseconds end = now + 20 * kSecond;
    for (; rtt.minimum() == 10 && now < end; now += kSecond / 10) rtt.add(50, now);
    EXPECT_GT(now - shortest_at, 5 * kSecond) << shortest_at;
    EXPECT_LT(now - shortest_at, 11 * kSecond) << shortest_at;
    EXPECT_EQ(rtt.minimum(), 50);
  }
}

TEST(RttEstimator, AfterALongPauseTheNextSampleIsTheMinimum) {
  RttEstimator rtt(kInitial);
  rtt.add(10, 0);
  EXPECT_EQ(rtt.minimum(), 10);
  rtt.add(50, 60 * kSecond);
  EXPECT_EQ(rtt.minimum(), 50);
}

TEST(RttEstimator, ASampleThatIsNotPositiveIsOneNanosecond) {
  RttEstimator rtt(kInitial);
  rtt.add(-5, 0);
  EXPECT_EQ(rtt.smoothed(), 1);
  EXPECT_EQ(rtt.minimum(), 1);
}

}  // namespace
}  // namespace gradcube::protocol
