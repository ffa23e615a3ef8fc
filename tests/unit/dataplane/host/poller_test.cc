// A poller turned by hand, or run on the test's own thread until what it polls stops it.

#include "dataplane/host/poller.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <gtest/gtest.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace gradcube::dataplane {
namespace {

constexpr Nanoseconds kMicrosecond = 1'000;
constexpr Nanoseconds kMillisecond = 1'000'000;

// A clock that is moved by hand, or moves on by `step` with every look.
class HandClock final : public Clock {
 public:
  std::int64_t now() override { return time += step; }
  Nanoseconds time = kMillisecond;
  Nanoseconds step = 0;
};

// Does what the test says and writes down what the poller asks of it.
class Recorder final : public Pollable {
 public:
  unsigned poll(Nanoseconds now) override {
    log.emplace_back("poll");
    times.push_back(now);
    return on_poll ? on_poll() : 0;
  }
  unsigned poll_urgent(Nanoseconds) override {
    log.emplace_back("urgent");
    return 0;
  }
  Nanoseconds next_event() const override { return next; }
  void prepare_wait() override { log.emplace_back("prepare"); }
  void finish_wait() override { log.emplace_back("finish"); }

  // How often this stands in the log.
  std::ptrdiff_t count(const std::string& entry) const {
    return std::count(log.begin(), log.end(), entry);
  }
  // Where the first sleep begins; log.size() if there is none.
  std::size_t first_sleep() const {
    return static_cast<std::size_t>(std::find(log.begin(), log.end(), "prepare") - log.begin());
  }

  std::function<unsigned()> on_poll;
  Nanoseconds next = kNever;
  std::vector<std::string> log;
  std::vector<Nanoseconds> times;
};

class PollerByHand : public testing::Test {
 protected:
  HandClock clock_;
  Recorder clocked_;
  Recorder attended_;
};

TEST_F(PollerByHand, PollsWhatLivesInTheClocksTimeFirst) {
  Poller poller(clock_, control::Idle::adaptive);
  std::vector<std::string> order;
  clocked_.on_poll = [&] { return order.emplace_back("clocked"), 2u; };
  attended_.on_poll = [&] { return order.emplace_back("attended"), 3u; };
  poller.add(attended_, Poller::TimeBase::attended);
  poller.add(clocked_, Poller::TimeBase::clock);
  EXPECT_EQ(poller.iterate(), 5u);
  EXPECT_EQ(order, (std::vector<std::string>{"clocked", "attended"}));
}

TEST_F(PollerByHand, AttendedTimeStandsStillInAStall) {
  Poller poller(clock_, control::Idle::adaptive);
  poller.add(clocked_, Poller::TimeBase::clock);
  poller.add(attended_, Poller::TimeBase::attended);
  poller.iterate();
  for (const Nanoseconds pause : {kMillisecond / 2, 10 * kMillisecond, kMillisecond / 2}) {
    clock_.time += pause;
    poller.iterate();
  }
  EXPECT_EQ(clocked_.times, (std::vector<Nanoseconds>{kMillisecond, 3 * kMillisecond / 2,
                                                      23 * kMillisecond / 2, 12 * kMillisecond}));
  // Of the ten milliseconds it has attended one.
  EXPECT_EQ(attended_.times, (std::vector<Nanoseconds>{kMillisecond, 3 * kMillisecond / 2,
                                                       5 * kMillisecond / 2, 3 * kMillisecond}));
  EXPECT_EQ(poller.stalls(), 1u);
}

TEST_F(PollerByHand, LooksForWhatIsUrgentWheneverAsMuchHasMovedAsItPolls) {
  Poller poller(clock_, control::Idle::adaptive);
  Recorder other;
  poller.add(clocked_, Poller::TimeBase::clock);
  poller.add(attended_, Poller::TimeBase::attended);
  poller.add(other, Poller::TimeBase::attended);
  clocked_.on_poll = [] { return 100U; };
  attended_.on_poll = [] { return 2U; };
  other.on_poll = [] { return 1U; };
  poller.iterate();
  EXPECT_EQ(other.count("urgent"), 0) << "nothing is urgent";
  poller.urgency().record(clock_.time);
  poller.iterate();
  EXPECT_EQ(other.count("urgent"), 1) << "behind the second";
  attended_.on_poll = [] { return 3U; };
  poller.iterate();
  EXPECT_EQ(other.log.end()[-2], "urgent") << "behind the first";
  other.on_poll = [] { return 3U; };
  poller.iterate();
  EXPECT_EQ(clocked_.count("urgent"), 4);
  EXPECT_EQ(attended_.count("urgent"), 4);
  const Nanoseconds end = clock_.time + Urgency::kRemembered;
  while (clock_.time < end) {
    clock_.time += kMillisecond;  // longer would be a stall
    poller.iterate();
  }
  const auto before = other.count("urgent");
  poller.iterate();
  EXPECT_EQ(other.count("urgent"), before) << "it has ended";
}

TEST_F(PollerByHand, PollsNoMoreWhatWasRemoved) {
  Poller poller(clock_, control::Idle::adaptive);
  poller.add(clocked_, Poller::TimeBase::clock);
  poller.add(attended_, Poller::TimeBase::attended);
  poller.iterate();
  poller.remove(clocked_);
  poller.iterate();
  poller.remove(attended_);
  poller.remove(attended_);
  poller.iterate();
  EXPECT_EQ(clocked_.times.size(), 1u);
  EXPECT_EQ(attended_.times.size(), 2u);
}

TEST_F(PollerByHand, TellsTheEarliestEventInTheClocksTime) {
  Poller poller(clock_, control::Idle::adaptive);
  EXPECT_EQ(poller.next_event(), kNever);
  poller.add(clocked_, Poller::TimeBase::clock);
  poller.add(attended_, Poller::TimeBase::attended);
  EXPECT_EQ(poller.next_event(), kNever);
  clocked_.next = 9 * kMillisecond;
  attended_.next = 8 * kMillisecond;
  EXPECT_EQ(poller.next_event(), 8 * kMillisecond);
  poller.iterate();
  clock_.time += 3 * kMillisecond;
  poller.iterate();
  // Attended time is two milliseconds behind.
  EXPECT_EQ(poller.next_event(), 9 * kMillisecond);
  clocked_.next = kNever;
  EXPECT_EQ(poller.next_event(), 10 * kMillisecond);
}

TEST_F(PollerByHand, RunsACallAtOnceWhenNobodyIsInRun) {
  Poller poller(clock_, control::Idle::adaptive);
  bool called = false;
  poller.call([&] { called = true; });
  EXPECT_TRUE(called);
  EXPECT_THROW(poller.call([] { throw std::runtime_error("its own"); }), std::runtime_error);
}

class PollerInRun : public PollerByHand {
 protected:
  PollerInRun() { clock_.step = 10 * kMicrosecond; }
  // Runs until it has polled `polls` times.
  void run(Poller& poller, unsigned polls) {
    const std::function<unsigned()> before = attended_.on_poll;
    attended_.on_poll = [this, &poller, polls, before] {
      if (attended_.times.size() >= polls) poller.stop();
      return before ? before() : 0u;
    };
    poller.add(attended_, Poller::TimeBase::attended);
    EXPECT_FALSE(poller.has_ended());
    poller.run();
    EXPECT_TRUE(poller.has_ended());
  }
};

TEST_F(PollerInRun, DoesNotSleepWhenItSpins) {
  Poller poller(clock_, control::Idle::spin);
  run(poller, 2'000);
  EXPECT_EQ(attended_.count("prepare"), 0);
}

TEST_F(PollerInRun, DoesNotSleepWhileSomethingIsDueThatCouldNotBeDone) {
  Poller poller(clock_, control::Idle::adaptive);
  attended_.next = 0;
  run(poller, 2'000);
  EXPECT_EQ(attended_.count("prepare"), 0);
}

TEST_F(PollerInRun, DoesNotSleepWhileSomethingMoves) {
  Poller poller(clock_, control::Idle::adaptive);
  attended_.on_poll = [] { return 1u; };
  run(poller, 2'000);
  EXPECT_EQ(attended_.count("prepare"), 0);
}

TEST_F(PollerInRun, DoesNotSleepShortlyBeforeAnEvent) {
  Poller poller(clock_, control::Idle::adaptive);
  attended_.on_poll = [this] { return attended_.next = clock_.time + 20 * kMicrosecond, 0u; };
  run(poller, 2'000);
  EXPECT_EQ(attended_.count("prepare"), 0);
}

TEST_F(PollerInRun, AnnouncesSleepAndLooksOnceMore) {
  Poller poller(clock_, control::Idle::adaptive);
  attended_.on_poll = [this] { return attended_.next = clock_.time + kMillisecond, 0u; };
  run(poller, 100);
  const std::size_t sleep = attended_.first_sleep();
  ASSERT_LT(sleep + 2, attended_.log.size());
  EXPECT_GE(sleep, 4u) << "it has to be idle for a while before it sleeps";
  EXPECT_EQ(attended_.log[sleep + 1], "poll");
  EXPECT_EQ(attended_.log[sleep + 2], "finish");
  EXPECT_EQ(attended_.count("prepare"), attended_.count("finish"));
}

TEST_F(PollerInRun, DoesNotTakeSleepForAStall) {
  Poller poller(clock_, control::Idle::adaptive);
  bool has_slept = false;
  attended_.on_poll = [&] {
    if (attended_.log.size() >= 2 && attended_.log[attended_.log.size() - 2] == "prepare") {
      has_slept = true;
      clock_.time += 50 * kMillisecond;  // as long as the sleep that begins now
    }
    return attended_.next = clock_.time + kMillisecond, 0u;
  };
  run(poller, 60);
  EXPECT_TRUE(has_slept);
  EXPECT_EQ(poller.stalls(), 0u);
}

TEST_F(PollerInRun, StaysAwakeWhenTheLastLookFindsWork) {
  Poller poller(clock_, control::Idle::adaptive);
  unsigned found = 0;
  attended_.on_poll = [&] {
    if (attended_.log.size() < 2 || attended_.log[attended_.log.size() - 2] != "prepare") return 0u;
    ++found;
    clock_.time += 50 * kMillisecond;
    return 1u;
  };
  run(poller, 62);  // not to end at a look whose time nobody counts
  EXPECT_GE(found, 1u);
  EXPECT_EQ(attended_.count("prepare"), attended_.count("finish"));
  EXPECT_EQ(poller.stalls(), found) << "the time was not slept, so it counts";
}

// Nothing but a doorbell ends a sleep in time in the tests that use it.
constexpr Nanoseconds kHour = 3600 * 1000 * kMillisecond;

TEST_F(PollerInRun, IsWokenByADoorbellThatRangBeforeItSlept) {
  Poller poller(clock_, control::Idle::adaptive, Poller::kCallPatience, kHour);
  attended_.on_poll = [&] {
    // Rings in the last look: the poller has announced its sleep, so this wakes it.
    if (attended_.log.size() >= 2 && attended_.log[attended_.log.size() - 2] == "prepare") {
      poller.doorbell().ring();
    }
    return 0u;
  };
  run(poller, 200);
  EXPECT_GE(attended_.count("prepare"), 1);
}

// A clock of the test's own time that ends no wait by itself.
class RealClock final : public Clock {
 public:
  std::int64_t now() override {
    return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
  }
};

TEST(PollerDeathTest, APollerThatNeverServesACallEndsTheProcessWithAMessage) {
  RealClock clock;
  Poller poller(clock, control::Idle::adaptive, 5 * kMillisecond);
  poller.announce_run();
  EXPECT_EXIT(poller.call([] {}), testing::ExitedWithCode(Poller::kStuckExitCode),
              "a poller did not respond for 5 ms");
}

TEST(PollerDeathTest, APollerThatNeverEndsIsNotAwaitedForEver) {
  RealClock clock;
  Poller poller(clock, control::Idle::adaptive, 5 * kMillisecond);
  poller.announce_run();
  poller.stop();
  EXPECT_EXIT(poller.await_end(), testing::ExitedWithCode(Poller::kStuckExitCode),
              "a poller did not respond for 5 ms");
}

}  // namespace
}  // namespace gradcube::dataplane
