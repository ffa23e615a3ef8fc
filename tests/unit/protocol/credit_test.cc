#include "protocol/credit.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <vector>

#include "tests/unit/protocol/credit_flows.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

// One queue, as in a switch: what is granted is sent at once, and arrives in this order.
class Queue {
 public:
  explicit Queue(const Flows& flows) : flows_(flows), queued_(flows.windows.size()) {}

  // Those granted in one burst enter it beginning with this one.
  void fill(std::size_t ahead) {
    for (std::size_t step = 0; step < queued_.size(); ++step) {
      const std::size_t flow = (ahead + step) % queued_.size();
      for (; queued_[flow] < flows_.windows[flow]->limit(); ++queued_[flow]) {
        waiting_.push_back(flow);
      }
    }
  }
  bool empty() const { return waiting_.empty(); }
  std::size_t take() {
    const std::size_t flow = waiting_.front();
    waiting_.pop_front();
    return flow;
  }

 private:
  const Flows& flows_;
  std::vector<std::uint64_t> queued_;
  std::deque<std::size_t> waiting_;
};

TEST(CreditPool, AFlowThatAsksForNothingHasNothing) {
  Flows flows(segments(24), 8);
  EXPECT_EQ(flows.sum(), 0U);
  grant_all(flows.pool, flows.ids[3], 100);
  EXPECT_EQ(flows.granted(3), 24U);
  EXPECT_EQ(flows.sum(), 24U);
}

TEST(CreditPool, ABudgetOfLessThanTwoSegmentsIsTwo) {
  Flows flows(segments(0), 3);
  for (std::size_t flow = 0; flow < 3; ++flow) flows.ask(flow, 10);
  flows.pool.distribute();
  EXPECT_EQ(flows.sum(), CreditBudget::kLeast);
}

TEST(CreditPool, NobodyIsGrantedMoreThanItHas) {
  Flows flows(segments(24), 2);
  grant_all(flows.pool, flows.ids[0], 3);
  EXPECT_EQ(flows.granted(0), 3U);
}

TEST(CreditPool, EqualBacklogsGetEqualShares) {
  Flows flows(segments(24), 4);
  flows.ask_for_all(200);
  for (std::size_t flow = 0; flow < 4; ++flow) EXPECT_EQ(flows.granted(flow), 6U);
}

TEST(CreditPool, TheMemoryBoundHoldsWhateverTheBudget) {
  for (const CreditSettings& settings : {segments(1'000), CreditSettings{}}) {
    Flows flows(settings, 1, 16);
    ReceiveWindow& window = *flows.windows[0];
    arrive(window, 0);  // here, but not used up
    grant_all(flows.pool, 0, 255);
    EXPECT_EQ(window.limit(), 16U);
    flows.pool.set_consumed(0, 1, 0);
    EXPECT_EQ(window.consumed(), 1U);
    EXPECT_EQ(window.held(), 0U);
    flows.pool.distribute();
    EXPECT_EQ(window.limit(), 17U);
  }
}

TEST(CreditPool, AnUnlimitedBudgetNeedsNoBacklog) {
  Flows flows({}, 3, 64);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(flows.windows[flow]->limit(), 64U);
}

TEST(CreditPool, AFlowThatLeavesGivesItsCreditBack) {
  Flows flows(segments(10), 2);
  flows.ask_for_all(100);
  EXPECT_EQ(flows.sum(), 10U);
  flows.pool.remove(flows.ids[0]);
  grant_all(flows.pool, flows.ids[1], 100);
  EXPECT_EQ(flows.granted(1), 10U);
  ReceiveWindow late;
  EXPECT_EQ(flows.pool.add(&late), flows.ids[0]);
}

// As messages between trainers go on over a reset: what their flows have on the way still comes.
TEST(CreditPool, AFlowThatComesBackBringsWhatIsOnItsWay) {
  constexpr Nanoseconds kLease = 20 * kMillisecond;
  Flows flows(segments(10), 2);
  grant_all(flows.pool, flows.ids[0], 10);
  ASSERT_EQ(flows.windows[0]->limit(), 10U);
  for (std::uint32_t i : {0U, 1U, 2U, 5U}) arrive(*flows.windows[0], i);
  flows.pool.remove(flows.ids[0]);
  EXPECT_EQ(flows.pool.add(flows.windows[0].get()), flows.ids[0]);
  EXPECT_EQ(flows.pool.outstanding(), 6U);
  grant_all(flows.pool, flows.ids[1], 100);
  EXPECT_EQ(flows.windows[1]->limit(), 4U) << "4 of 10 have arrived";
  // What does not come counts no longer than any other grant.
  for (Nanoseconds now = 0; now <= 3 * kLease; now += kLease) flows.pool.distribute(now);
  grant_all(flows.pool, flows.ids[1], 100);
  EXPECT_GT(flows.windows[1]->limit(), 4U);
}

TEST(CreditPool, ASequenceThatNobodyCanHaveReachedIsNoDemandForEver) {
  for (const std::uint64_t invented : {~0ULL, 1ULL << 31}) {
    Flows flows(segments(10), 1);
    flows.pool.on_frame(flows.ids[0], invented);
    flows.pool.distribute();
    for (int segment = 0; segment < 1'000 && flows.granted(0) != 0; ++segment) {
      flows.arrive(0, 0);
      flows.pool.distribute();
    }
    EXPECT_EQ(flows.granted(0), 0U);
    EXPECT_LE(flows.windows[0]->limit(), ReceiveWindow::kWindow + 255);
  }
}

TEST(CreditPool, AnEngineWithASmallBudgetIsServedBesideOneThatUsesAllOfIts) {
  PortCredit port(segments(40));
  CreditPool small(port, 0);
  CreditPool large(port, 1);
  ReceiveWindow for_small;
  ReceiveWindow for_large;
  const CreditPool::Handle flow = small.add(&for_small);
  const CreditPool::Handle theirs = large.add(&for_large);
  for (int arrival = 0; arrival < 2'000; ++arrival) small.on_segment(true, true, 1);
  ASSERT_EQ(small.budget().segments(), CreditBudget::kLeast);
  small.on_frame(flow, 255);
  grant_all(large, theirs, 255);
  ASSERT_EQ(port.outstanding(), 40U);
  small.distribute();
  EXPECT_EQ(for_small.limit(), 0U);
  for (int arrival = 0; arrival < 60; ++arrival) {
    arrive(for_large, for_large.cumulative());
    large.set_consumed(theirs, for_large.cumulative(), 0);
    large.on_frame(theirs, for_large.highest() + 255);
    large.distribute();
    small.distribute();
  }
  EXPECT_GE(port.outstanding(), 20U) << "the other has its part";
  EXPECT_EQ(for_small.limit(), 1U);
}

TEST(CreditPool, DistributesNothingWhenNothingChanged) {
  Flows flows(segments(10), 2);
  flows.arrive(0, 100);
  EXPECT_TRUE(flows.pool.distribute());
  EXPECT_FALSE(flows.pool.distribute());
}

TEST(CreditPool, NamesThoseWhoseLimitsItHasRaisedAndNobodyElse) {
  for (const CreditSettings& settings : {segments(10), CreditSettings{}}) {
    Flows flows(settings, 3, 8);
    flows.arrive(1, 100);
    ASSERT_TRUE(flows.pool.distribute());
    for (const CreditPool::Handle flow : flows.pool.raised()) EXPECT_EQ(flow, flows.ids[1]);
    EXPECT_FALSE(flows.pool.raised().empty());
    EXPECT_FALSE(flows.pool.distribute());
    EXPECT_TRUE(flows.pool.raised().empty());
  }
}

TEST(CreditPool, AJobGetsAsMuchAsAnotherWhateverTheNumberOfItsFlows) {
  Flows flows(segments(12), 0);
  for (const std::uint32_t job : {1U, 2U, 2U, 2U, 2U, 2U}) flows.add({.job = job});
  flows.ask_for_all(100);
  Queue queue(flows);
  for (unsigned arrival = 0; arrival < 100; ++arrival) {
    queue.fill(0);
    flows.arrive(queue.take(), 100);
    flows.pool.distribute();
  }
  EXPECT_EQ(flows.granted(0), 6U);
  EXPECT_EQ(flows.sum(), 12U);
}

TEST(CreditPool, TellsItsPortWhatIsOutstandingAndGivesItBackAtItsEnd) {
  PortCredit port(segments(10));
  {
    CreditPool pool(port, 3);
    ReceiveWindow window;
    const CreditPool::Handle flow = pool.add(&window);
    grant_all(pool, flow, 4);
    EXPECT_EQ(port.outstanding(), 4U);
    arrive(window, 0);
    pool.on_frame(flow, 4);
    pool.distribute();
    EXPECT_EQ(port.outstanding(), 3U);
    arrive(window, 4);  // unasked, and one of those before it is missing
    pool.on_frame(flow, 5);
    pool.distribute();
    EXPECT_EQ(port.outstanding(), pool.outstanding());
  }
  EXPECT_EQ(port.outstanding(), 0U);
}

TEST(CreditPool, WhatASilentFlowHoldsIsGivenToOthersAfterALease) {
  constexpr Nanoseconds kLease = 20 * kMillisecond;
  Flows flows(segments(10), 2);
  grant_all(flows.pool, flows.ids[0], 10);
  EXPECT_EQ(flows.granted(0), 10U);
  flows.ask(1, 10);
  for (Nanoseconds now = 0; now < kLease; now += kMillisecond) flows.pool.distribute(now);
  EXPECT_EQ(flows.granted(1), 0U) << "its segments may still be on their way";
  for (Nanoseconds now = kLease; now <= 3 * kLease; now += kMillisecond) flows.pool.distribute(now);
  grant_all(flows.pool, flows.ids[1], 10);
  EXPECT_EQ(flows.granted(1), 10U);
  flows.arrive(0, 0);
  EXPECT_EQ(flows.granted(0), 9U) << "it comes after all, and is taken";
  flows.pool.distribute(4 * kLease);
  EXPECT_EQ(flows.port.outstanding(), flows.pool.outstanding());
}

TEST(CreditPool, ASilentFlowThatHasLostItsCreditGetsNoneUntilItAsksAnew) {
  constexpr Nanoseconds kLease = 20 * kMillisecond;
  Flows flows(segments(10), 2);
  flows.ask_for_all(100);
  ASSERT_GT(flows.granted(0), 0U);
  Nanoseconds now = 0;
  for (; now < 10 * kLease; now += kLease / 8) {
    if (flows.granted(1) != 0) flows.arrive(1, 100);
    flows.pool.distribute(now);
    if (now < 4 * kLease) continue;
    EXPECT_EQ(flows.granted(1), 10U) << "the whole budget is the other's";
  }
  const std::uint64_t before = flows.granted(0);
  flows.ask(0, 100);
  for (unsigned i = 0; i < 10; ++i) {
    flows.arrive(1, 100);
    flows.pool.distribute(now);
  }
  EXPECT_GT(flows.granted(0), before);
}

TEST(CreditPool, AFlowThatComesAlongKeepsItsCreditHoweverLongItTakes) {
  constexpr Nanoseconds kLease = 20 * kMillisecond;
  Flows flows(segments(10), 2);
  grant_all(flows.pool, flows.ids[0], 10);
  flows.ask(1, 10);
  Nanoseconds now = 0;
  for (unsigned i = 0; i < 5; ++i) {
    now += kLease / 2;
    flows.arrive(0, 0);
    flows.ask(1, 10);
    flows.pool.distribute(now);
  }
  EXPECT_EQ(flows.granted(0), 5U);
  EXPECT_EQ(flows.granted(1), 5U);
}

TEST(CreditPool, TakesWhatAnotherEngineGivesBackWithoutAFrameOfItsOwn) {
  PortCredit port(segments(10));
  CreditPool pool(port, 0);
  ReceiveWindow window;
  const CreditPool::Handle flow = pool.add(&window);
  {
    CreditPool other(port, 1);
    ReceiveWindow theirs;
    grant_all(other, other.add(&theirs), 10);
    pool.on_frame(flow, 2);
    EXPECT_FALSE(pool.distribute());
    EXPECT_TRUE(pool.starved());
  }
  EXPECT_TRUE(pool.distribute());
  EXPECT_EQ(window.limit(), 2U);
  EXPECT_FALSE(pool.starved());
}

TEST(CreditPool, TheSumOfGrantsNeverExceedsTheBudgetAndNobodyStarves) {
  const std::uint64_t seed = test_seed(42);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t count : {1U, 3U, 8U, 30U}) {
    const std::uint64_t budget = 24;
    Flows flows(segments(budget), count);
    for (std::size_t flow = 0; flow < count; ++flow) flows.ask(flow, 255);
    flows.pool.distribute();
    std::vector<std::uint64_t> served(count);
    Queue queue(flows);
    for (int burst = 0; burst < 5'000; ++burst) {
      queue.fill(random() % count);
      for (std::uint64_t arrivals = 1 + random() % 8; arrivals > 0 && !queue.empty(); --arrivals) {
        const std::size_t flow = queue.take();
        flows.arrive(flow, 255);
        ++served[flow];
      }
      flows.pool.distribute();
      ASSERT_LE(flows.sum(), budget);
    }
    SCOPED_TRACE(count);
    const auto [least, most] = std::minmax_element(served.begin(), served.end());
    EXPECT_GE(*least * 10, *most * 9);
  }
}

}  // namespace
}  // namespace gradcube::protocol
