#include "protocol/timer_wheel.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

constexpr Nanoseconds kWidth = 100;

std::vector<TimerEntry*> fired(TimerWheel& wheel, Nanoseconds now) {
  std::vector<TimerEntry*> entries;
  wheel.advance(now, [&](TimerEntry& entry) { entries.push_back(&entry); });
  return entries;
}

TEST(TimerWheel, FiresNeverEarlyAndAtMostOneWidthLate) {
  for (Nanoseconds deadline = 0; deadline < 1'000; deadline += 7) {
    TimerWheel wheel(0, kWidth, 4);
    TimerEntry entry;
    wheel.schedule(entry, deadline);
    Nanoseconds now = 0;
    while (fired(wheel, now).empty()) ++now;
    EXPECT_GE(now, deadline);
    EXPECT_LE(now, deadline + kWidth);
    EXPECT_FALSE(entry.scheduled());
    EXPECT_EQ(entry.deadline(), kNever);
  }
}

TEST(TimerWheel, AJumpOverManyRotationsFiresAllThatIsDueAndNothingElse) {
  TimerWheel wheel(0, kWidth, 8);
  TimerEntry soon, later, far;
  wheel.schedule(soon, 50);
  wheel.schedule(later, 50 + 8 * kWidth);
  wheel.schedule(far, 50 + 800 * kWidth);
  EXPECT_EQ(fired(wheel, 100 * kWidth), (std::vector<TimerEntry*>{&soon, &later}));
  EXPECT_TRUE(far.scheduled());
  EXPECT_EQ(fired(wheel, 801 * kWidth), std::vector<TimerEntry*>{&far});
}

TEST(TimerWheel, AnEntryFiresOnceAndNotAfterItWasCancelled) {
  TimerWheel wheel(0, kWidth);
  TimerEntry kept, cancelled;
  wheel.schedule(kept, 10);
  wheel.schedule(cancelled, 10);
  wheel.cancel(cancelled);
  EXPECT_EQ(fired(wheel, kWidth), std::vector<TimerEntry*>{&kept});
  EXPECT_TRUE(fired(wheel, 10 * kWidth).empty());
}

TEST(TimerWheel, SchedulingAgainMovesAnEntryAndNeverCancelsIt) {
  TimerWheel wheel(0, kWidth);
  TimerEntry entry;
  wheel.schedule(entry, 10);
  wheel.schedule(entry, 510);
  EXPECT_TRUE(fired(wheel, 500).empty());
  EXPECT_EQ(fired(wheel, 600).size(), 1U);
  wheel.schedule(entry, 700);
  wheel.schedule(entry, kNever);
  EXPECT_FALSE(entry.scheduled());
}

TEST(TimerWheel, ADeadlineInThePastFiresAtTheEndOfThisTick) {
  TimerWheel wheel(0, kWidth);
  fired(wheel, 1'050);
  TimerEntry entry;
  wheel.schedule(entry, 3);
  EXPECT_TRUE(fired(wheel, 1'099).empty());
  EXPECT_EQ(fired(wheel, 1'100).size(), 1U);
}

TEST(TimerWheel, ACallbackMayScheduleCancelAndDestroy) {
  TimerWheel wheel(0, kWidth, 2);
  TimerEntry again;
  TimerEntry victim;
  auto doomed = std::make_unique<TimerEntry>();
  wheel.schedule(again, 10);
  wheel.schedule(victim, 10);
  wheel.schedule(*doomed, 10);
  int calls = 0;
  wheel.advance(5 * kWidth, [&](TimerEntry& entry) {
    ++calls;
    ASSERT_EQ(&entry, &again);
    wheel.cancel(victim);
    doomed.reset();
    wheel.schedule(entry, 5 * kWidth + 1);
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(fired(wheel, 6 * kWidth), std::vector<TimerEntry*>{&again});
}

TEST(TimerWheel, AnEntryLeavesTheWheelWhenItDies) {
  TimerWheel wheel(0, kWidth);
  {
    TimerEntry entry;
    wheel.schedule(entry, 10);
  }
  EXPECT_TRUE(fired(wheel, kWidth).empty());
  EXPECT_EQ(wheel.next_expiry(), kNever);
}

TEST(TimerWheel, AnEntryMayOutliveItsWheel) {
  TimerEntry first, second;
  {
    TimerWheel wheel(0, kWidth);
    wheel.schedule(first, 10);
    wheel.schedule(second, 10);
  }
  EXPECT_NO_FATAL_FAILURE({ TimerWheel(0, kWidth).cancel(first); });
  EXPECT_FALSE(first.scheduled());
}

TEST(TimerWheel, NextExpiryIsTheFirstMomentAtWhichSomethingFires) {
  TimerWheel wheel(1'000, kWidth, 4);
  TimerEntry near, far;
  EXPECT_EQ(wheel.next_expiry(), kNever);
  wheel.schedule(far, 9'999);
  wheel.schedule(near, 1'234);
  const Nanoseconds at = wheel.next_expiry();
  EXPECT_TRUE(fired(wheel, at - 1).empty());
  EXPECT_EQ(fired(wheel, at), std::vector<TimerEntry*>{&near});
}

TEST(TimerWheel, NextExpiryIsNotThatOfALaterRotation) {
  TimerWheel wheel(0, kWidth, 4);
  TimerEntry later, soon;
  wheel.schedule(later, 5 * kWidth);  // in a slot before that of the other
  EXPECT_EQ(wheel.next_expiry(), 6 * kWidth);
  wheel.schedule(soon, 3 * kWidth);
  EXPECT_EQ(wheel.next_expiry(), 4 * kWidth);
  wheel.cancel(soon);
  EXPECT_EQ(wheel.next_expiry(), 6 * kWidth);
  wheel.schedule(soon, 1);
  EXPECT_EQ(wheel.next_expiry(), kWidth) << "what it has looked through already";
  EXPECT_EQ(fired(wheel, kWidth), std::vector<TimerEntry*>{&soon});
  wheel.cancel(later);
  EXPECT_EQ(wheel.next_expiry(), kNever);
}

TEST(TimerWheel, AgreesWithASortedListOverARandomRun) {
  const std::uint64_t seed = test_seed(9);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  TimerWheel wheel(0, kWidth, 16);
  std::deque<TimerEntry> entries(200);
  std::vector<Nanoseconds> expected(entries.size(), kNever);
  Nanoseconds now = 0;
  for (int round = 0; round < 20'000; ++round) {
    const std::size_t index = random() % entries.size();
    if (random() % 4 == 0) {
      wheel.cancel(entries[index]);
      expected[index] = kNever;
    } else {
      expected[index] = now + static_cast<Nanoseconds>(random() % 5'000);
      wheel.schedule(entries[index], expected[index]);
    }
    now += static_cast<Nanoseconds>(random() % 150);
    wheel.advance(now, [&](TimerEntry& entry) {
      const auto at = static_cast<std::size_t>(
          std::find_if(entries.begin(), entries.end(),
                       [&](const TimerEntry& other) { return &other == &entry; }) -
          entries.begin());
      EXPECT_LE(expected[at], now);
      expected[at] = kNever;
    });
    for (const Nanoseconds deadline : expected) ASSERT_GT(deadline, now - kWidth);
  }
}

}  // namespace
}  // namespace gradcube::protocol
