#include "protocol/credit.h"

#include <algorithm>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "tests/unit/protocol/seed.h"

namespace gradcube::protocol {
namespace {

constexpr std::uint32_t kSegment = 1'000;

CreditSettings segments(std::uint64_t budget, unsigned window = ReceiveWindow::kWindow) {
  return {.budget_bytes = budget * kSegment, .segment_bytes = kSegment, .window = window};
}

// Flows over one pool, whose segments arrive in order.
struct Flows {
  explicit Flows(const CreditSettings& settings, std::size_t count) : pool(settings) {
    for (std::size_t index = 0; index < count; ++index) {
      windows.push_back(std::make_unique<ReceiveWindow>());
      ids.push_back(pool.add(windows.back().get()));
    }
    pool.distribute();
  }

  // The flow's next segment arrives and is used up.
  void arrive(std::size_t flow, std::uint8_t backlog) {
    std::uint64_t sequence = 0;
    ReceiveWindow& window = *windows[flow];
    ASSERT_EQ(window.arrive(window.acknowledged(), sequence, 0), Arrival::fresh);
    pool.set_consumed(ids[flow], window.cumulative(), 0);
    pool.on_arrival(ids[flow], backlog);
  }

  std::uint64_t granted(std::size_t flow) const {
    return windows[flow]->limit() - windows[flow]->arrivals();
  }

  std::uint64_t sum() const {
    std::uint64_t total = 0;
    for (std::size_t flow = 0; flow < windows.size(); ++flow) total += granted(flow);
    return total;
  }

  CreditPool pool;
  std::vector<std::unique_ptr<ReceiveWindow>> windows;
  std::vector<CreditPool::Handle> ids;
};

TEST(CreditPool, RefusesSettingsThatMakeNoSense) {
  EXPECT_THROW(CreditPool({.budget_bytes = 1, .segment_bytes = 0}), std::invalid_argument);
  EXPECT_THROW(CreditPool(segments(8, 0)), std::invalid_argument);
  EXPECT_THROW(CreditPool(segments(8, 129)), std::invalid_argument);
}

TEST(CreditPool, EveryFlowHasItsFloorWhateverTheBudget) {
  Flows flows(segments(0), 5);
  for (std::size_t flow = 0; flow < 5; ++flow) {
    EXPECT_EQ(flows.granted(flow), 1U);
    flows.arrive(flow, 10);
    flows.pool.distribute();
    EXPECT_EQ(flows.granted(flow), 1U);
  }
}

TEST(CreditPool, UnusedCreditGoesToWhoHasABacklog) {
  Flows flows(segments(24), 8);
  flows.arrive(3, 100);
  EXPECT_TRUE(flows.pool.distribute());
  EXPECT_EQ(flows.granted(3), 24U - 7U);
  EXPECT_EQ(flows.sum(), 24U);
}

TEST(CreditPool, NobodyIsGrantedMoreThanItHas) {
  Flows flows(segments(24), 2);
  flows.arrive(0, 3);
  flows.pool.distribute();
  EXPECT_EQ(flows.granted(0), 3U);
}

TEST(CreditPool, EqualBacklogsGetEqualShares) {
  Flows flows(segments(24), 4);
  for (std::size_t flow = 0; flow < 4; ++flow) flows.arrive(flow, 200);
  flows.pool.distribute();
  for (std::size_t flow = 0; flow < 4; ++flow) EXPECT_EQ(flows.granted(flow), 6U);
}

TEST(CreditPool, TheMemoryBoundHoldsWhateverTheBudget) {
  for (const auto& settings : {segments(1'000, 16), CreditSettings{.window = 16}}) {
    Flows flows(settings, 1);
    std::uint64_t sequence = 0;
    ReceiveWindow& window = *flows.windows[0];
    window.arrive(0, sequence, 0);  // here, but not used up
    flows.pool.on_arrival(0, 255);
    flows.pool.distribute();
    EXPECT_EQ(window.limit(), 16U);
    flows.pool.set_consumed(0, 1, 0);
    EXPECT_EQ(window.consumed(), 1U);
    EXPECT_EQ(window.held(), 0U);
    flows.pool.distribute();
    EXPECT_EQ(window.limit(), 17U);
  }
}

TEST(CreditPool, AnUnlimitedBudgetNeedsNoBacklog) {
  Flows flows({.window = 64}, 3);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(flows.windows[flow]->limit(), 64U);
}

TEST(CreditPool, AFlowThatLeavesGivesItsCreditBack) {
  Flows flows(segments(10), 2);
  flows.arrive(0, 100);
  flows.arrive(1, 100);
  flows.pool.distribute();
  EXPECT_EQ(flows.sum(), 10U);
  flows.pool.remove(flows.ids[0]);
  flows.pool.distribute();
  EXPECT_EQ(flows.granted(1), 10U);
  ReceiveWindow late;
  EXPECT_EQ(flows.pool.add(&late), flows.ids[0]);
}

TEST(CreditPool, DistributesNothingWhenNothingChanged) {
  Flows flows(segments(10), 2);
  flows.arrive(0, 100);
  EXPECT_TRUE(flows.pool.distribute());
  EXPECT_FALSE(flows.pool.distribute());
}

TEST(CreditPool, NamesThoseWhoseLimitsItHasRaisedAndNobodyElse) {
  for (const CreditSettings& settings : {segments(10), CreditSettings{.window = 8}}) {
    Flows flows(settings, 3);
    flows.arrive(1, 100);
    ASSERT_TRUE(flows.pool.distribute());
    for (const CreditPool::Handle flow : flows.pool.raised()) EXPECT_EQ(flow, flows.ids[1]);
    EXPECT_FALSE(flows.pool.raised().empty());
    EXPECT_FALSE(flows.pool.distribute());
    EXPECT_TRUE(flows.pool.raised().empty());
  }
}

TEST(CreditPool, TheSumOfGrantsNeverExceedsTheBudgetAndNobodyStarves) {
  const std::uint64_t seed = test_seed(42);
  SCOPED_TRACE(seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const std::size_t count : {1U, 3U, 8U, 30U}) {
    const std::uint64_t budget = 24;
    Flows flows(segments(budget), count);
    std::vector<std::uint64_t> served(count);
    // One queue, as in a switch: those granted in one burst enter it in an order of chance.
    std::deque<std::size_t> queue;
    std::vector<std::uint64_t> queued(count);
    for (int burst = 0; burst < 5'000; ++burst) {
      const std::size_t ahead = random() % count;  // whose segments get into the queue first
      for (std::size_t step = 0; step < count; ++step) {
        const std::size_t flow = (ahead + step) % count;
        while (queued[flow] < flows.windows[flow]->limit()) {
          queue.push_back(flow);
          ++queued[flow];
        }
      }
      for (std::uint64_t arrivals = 1 + random() % 8; arrivals > 0 && !queue.empty(); --arrivals) {
        const std::size_t flow = queue.front();
        queue.pop_front();
        flows.arrive(flow, 255);
        ++served[flow];
      }
      flows.pool.distribute();
      ASSERT_LE(flows.sum(), std::max<std::uint64_t>(budget, count));
    }
    SCOPED_TRACE(count);
    const auto [least, most] = std::minmax_element(served.begin(), served.end());
    EXPECT_GE(*least * 10, *most * 9);
  }
}

}  // namespace
}  // namespace gradcube::protocol
