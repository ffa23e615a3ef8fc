// Flows without a budget over a network that nobody knows: their windows shrink while it says that
// they are too long.
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <vector>

#include "protocol/credit.h"
#include "tests/unit/protocol/credit_flows.h"

namespace gradcube::protocol {
namespace {

constexpr unsigned kWholeWindow = 16;

CreditSettings shrinking() {
  return {.window_that_shrinks = kWholeWindow, .segment_bytes = kSegment};
}

// The flows' next segments arrive in turn and are used up, so many of each; of a hundred, so many
// were sent again, or were marked.
void pass(Flows& flows, unsigned segments_of_each, unsigned again_of_100, unsigned marked_of_100) {
  unsigned number = 0;
  for (unsigned i = 0; i < segments_of_each; ++i) {
    for (std::size_t flow = 0; flow < flows.windows.size(); ++flow, ++number) {
      flows.arrive(flow, 255);
      flows.pool.on_segment(number % 100 < marked_of_100, number % 100 < again_of_100, kSegment);
      flows.pool.distribute();
    }
  }
}

std::uint64_t window_of(const Flows& flows, std::size_t flow) {
  return flows.windows[flow]->limit() - flows.windows[flow]->consumed();
}

TEST(ShrinkingWindow, IsWholeWithoutASignalAndNeedsNoBacklog) {
  Flows flows(shrinking(), 3, kWholeWindow);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(window_of(flows, flow), kWholeWindow);
  pass(flows, 1'000, 1, 0);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(window_of(flows, flow), kWholeWindow);
}

TEST(ShrinkingWindow, OfAllFlowsIsShorterAfterHeavyLossAndComesBack) {
  Flows flows(shrinking(), 3, kWholeWindow);
  pass(flows, 300, 10, 0);
  for (std::size_t flow = 0; flow < 3; ++flow) {
    EXPECT_LT(window_of(flows, flow), kWholeWindow);
    EXPECT_GE(window_of(flows, flow), CreditBudget::kLeast);
  }
  pass(flows, 2'000, 0, 0);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(window_of(flows, flow), kWholeWindow);
}

TEST(ShrinkingWindow, CountsThePacketsInWhichSegmentsPassTheNetwork) {
  CreditSettings settings = shrinking();
  settings.packets_of_segment = 6;
  // Where one segment of so many was sent again.
  const auto after = [&](unsigned one_of, std::uint32_t bytes) {
    Flows flows(settings, 1, kWholeWindow);
    for (unsigned number = 0; number < 600; ++number) {
      flows.arrive(0, 255);
      flows.pool.on_segment(false, number % one_of == 0, bytes);
      flows.pool.distribute();
    }
    return window_of(flows, 0);
  };
  EXPECT_EQ(after(12, kSegment), kWholeWindow) << "one packet of 72 was lost: damage";
  EXPECT_EQ(after(2, kSegment), 1u) << "one of twelve; a segment has six";
  EXPECT_LT(after(12, kSegment / 7), kWholeWindow) << "each was one packet";
}

TEST(ShrinkingWindow, IsNeverLessThanTwoSegments) {
  Flows flows(shrinking(), 3, kWholeWindow);
  pass(flows, 3'000, 100, 100);
  for (std::size_t flow = 0; flow < 3; ++flow) {
    EXPECT_EQ(window_of(flows, flow), CreditBudget::kLeast);
  }
}

TEST(ShrinkingWindow, HeedsMarksToo) {
  Flows flows(shrinking(), 3, kWholeWindow);
  pass(flows, 1'000, 0, 50);
  EXPECT_LT(window_of(flows, 0), kWholeWindow);
}

TEST(ShrinkingWindow, WithoutItNothingShrinks) {
  Flows flows({}, 3, kWholeWindow);
  pass(flows, 1'000, 100, 100);
  for (std::size_t flow = 0; flow < 3; ++flow) EXPECT_EQ(window_of(flows, flow), kWholeWindow);
}

// A queue that passes a segment in each moment, and drops what comes while it is full. Who sent it
// sends it again some time later.
class Bottleneck {
 public:
  explicit Bottleneck(const CreditSettings& settings) : flows_(settings, kFlows, kWholeWindow) {}

  // The share of what was sent that it has dropped, over so many moments.
  double dropped_share(unsigned moments) {
    sent_ = 0;
    dropped_ = 0;
    for (unsigned i = 0; i < moments; ++i) pass_one();
    return static_cast<double>(dropped_) / static_cast<double>(sent_);
  }

 private:
  static constexpr std::size_t kFlows = 8;
  static constexpr std::size_t kQueue = 40;
  static constexpr std::uint64_t kUntilSentAgain = 64;

  struct Segment {
    std::size_t flow;
    std::uint64_t sequence;
    bool again;
    std::uint64_t due;
  };

  void pass_one() {
    ++now_;
    for (; !lost_.empty() && lost_.front().due <= now_; lost_.pop_front()) {
      Segment segment = lost_.front();
      segment.again = true;
      send(segment);
    }
    for (std::size_t step = 0; step < kFlows; ++step) {
      const std::size_t flow = (now_ + step) % kFlows;
      while (next_[flow] < flows_.windows[flow]->limit()) send({flow, next_[flow]++, false, 0});
    }
    if (queue_.empty()) return;
    const Segment arrived = queue_.front();
    queue_.pop_front();
    ReceiveWindow& window = *flows_.windows[arrived.flow];
    ASSERT_EQ(arrive(window, arrived.sequence), Arrival::fresh);
    flows_.pool.on_segment(false, arrived.again, kSegment);
    flows_.pool.set_consumed(flows_.ids[arrived.flow], window.cumulative(), 0);
    flows_.pool.on_frame(flows_.ids[arrived.flow], window.highest() + 255);
    flows_.pool.distribute();
  }

  void send(Segment segment) {
    ++sent_;
    if (queue_.size() < kQueue) {
      queue_.push_back(segment);
      return;
    }
    ++dropped_;
    segment.due = now_ + kUntilSentAgain;
    lost_.push_back(segment);
  }

  Flows flows_;
  std::vector<std::uint64_t> next_ = std::vector<std::uint64_t>(kFlows);
  std::deque<Segment> queue_;
  std::deque<Segment> lost_;  // by when they are sent again
  std::uint64_t now_ = 0;
  std::uint64_t sent_ = 0;
  std::uint64_t dropped_ = 0;
};

TEST(ShrinkingWindow, AtABottleneckFewSegmentsAreDroppedInTheLongRun) {
  constexpr unsigned kMoments = 20'000;
  Bottleneck with_it(shrinking());
  with_it.dropped_share(kMoments);
  const double dropped = with_it.dropped_share(kMoments);
  Bottleneck without(CreditSettings{});
  without.dropped_share(kMoments);
  EXPECT_LT(dropped, without.dropped_share(kMoments) / 4);
  EXPECT_LT(dropped, 0.03);
}

}  // namespace
}  // namespace gradcube::protocol
