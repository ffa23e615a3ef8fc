#include "dataplane/daemon/process/attended_clock.h"

#include <gtest/gtest.h>

namespace gradcube::dataplane {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

class AttendedClocks : public testing::Test {
 protected:
  // What the clock advances by when so much of the system's time has gone by.
  control::Instant advance_after(AttendedClock::SteadyClock::duration time) {
    const control::Instant before = clock_.now();
    system_ += time;
    clock_.advance();
    return clock_.now() - before;
  }

  AttendedClock::SteadyClock::time_point system_{std::chrono::hours(5)};
  AttendedClock clock_{[this] { return system_; }};
};

TEST_F(AttendedClocks, AdvanceWithTheSystemsClock) {
  EXPECT_EQ(advance_after(milliseconds(20)), milliseconds(20));
  EXPECT_EQ(advance_after(milliseconds(0)), milliseconds(0));
  EXPECT_EQ(advance_after(milliseconds(7)), milliseconds(7));
}

TEST_F(AttendedClocks, LeaveOutTheTimeInWhichNobodyAdvancedThem) {
  EXPECT_EQ(advance_after(seconds(10)), AttendedClock::kMost);
  EXPECT_EQ(advance_after(milliseconds(20)), milliseconds(20)) << "the gap came back";
  EXPECT_EQ(advance_after(seconds(10)), AttendedClock::kMost);
}

TEST_F(AttendedClocks, CountAGapOfExactlyTheMost) {
  EXPECT_EQ(advance_after(AttendedClock::kMost - milliseconds(1)),
            AttendedClock::kMost - milliseconds(1));
  EXPECT_EQ(advance_after(AttendedClock::kMost), AttendedClock::kMost);
  EXPECT_EQ(advance_after(AttendedClock::kMost + milliseconds(1)), AttendedClock::kMost);
}

TEST_F(AttendedClocks, StandStillBetweenTwoAdvances) {
  clock_.advance();
  const control::Instant start = clock_.now();
  for (unsigned i = 0; i < 1'000; ++i) {
    system_ += milliseconds(1);
    ASSERT_EQ(clock_.now(), start);
  }
  // However often they were read, it was one gap.
  EXPECT_EQ(advance_after(milliseconds(0)), AttendedClock::kMost);
}

TEST_F(AttendedClocks, LoseNothingOfStepsThatAreSmallerThanTheirUnit) {
  const control::Instant start = clock_.now();
  for (unsigned i = 0; i < 10'000; ++i) advance_after(nanoseconds(300));
  EXPECT_EQ(clock_.now() - start, milliseconds(3));
}

TEST_F(AttendedClocks, DoNotBeginAtZero) { EXPECT_GT(clock_.now(), control::Instant(0)); }

}  // namespace
}  // namespace gradcube::dataplane
