// Which flow sends next: by job, lane, collective, step and rotation.

#include "dataplane/engine/flows/flow_scheduler.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <vector>

#include "dataplane/fabric/emulated/random.h"
#include "tests/unit/dataplane/engine/loose_flows.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Visit = FlowRotation::Visit;

constexpr std::uint32_t kQuantum = 1000;

// Flows with segments to send; a flow that has none left sleeps.
class FlowSchedulerTest : public testing::Test {
 protected:
  // A flow, awake, that has so many segments to send.
  Flow& add(LooseFlows& of, const FlowScheduler::Rank& rank, unsigned segments = 1,
            std::uint64_t collective = 1) {
    Flow& flow = of.add();
    flow.sending = collective;
    scheduler_.add(of.job(), rank, flow);
    give(flow, segments);
    return flow;
  }
  void give(Flow& flow, unsigned segments) {
    left_[&flow] += segments;
    if (segments != 0) scheduler_.wake(flow);
  }
  // Who sent, in order; all segments have `bytes` bytes.
  std::vector<const Flow*> serve(unsigned limit, std::uint32_t bytes = kQuantum) {
    return serve_with(limit, [bytes] { return bytes; });
  }
  template <typename Length>
  std::vector<const Flow*> serve_with(unsigned limit, Length&& length) {
    return sent_by([&](const auto& send) { return scheduler_.serve(limit, send); }, length);
  }
  std::vector<const Flow*> serve_short(unsigned limit, std::uint32_t bytes = kQuantum) {
    return sent_by([&](const auto& send) { return scheduler_.serve_short(limit, send); },
                   [bytes] { return bytes; });
  }
  template <typename Serve, typename Length>
  std::vector<const Flow*> sent_by(const Serve& serve, Length&& length) {
    std::vector<const Flow*> sent;
    const unsigned served = serve([&](Flow& flow, std::uint32_t& bytes) {
      ++visits_;
      if (left_[&flow] == 0) return Visit::nothing;
      --left_[&flow];
      bytes = length();
      sent.push_back(&flow);
      sent_bytes_[flow.job] += bytes;
      return Visit::served;
    });
    EXPECT_EQ(served, sent.size());
    return sent;
  }
  Flow& add_short(LooseFlows& of, const FlowScheduler::Rank& rank, unsigned segments) {
    Flow& flow = add(of, rank, 0);
    flow.sends_short = true;
    give(flow, segments);
    return flow;
  }
  static unsigned count(const std::vector<const Flow*>& sent, const Flow& flow) {
    return static_cast<unsigned>(std::count(sent.begin(), sent.end(), &flow));
  }

  LooseFlows one_{1};
  LooseFlows other_{2};
  FlowScheduler scheduler_{kQuantum};
  std::map<const Flow*, unsigned> left_;
  std::map<const EngineJob*, std::uint64_t> sent_bytes_;
  unsigned visits_ = 0;
};

TEST_F(FlowSchedulerTest, SharesAPortByTheWeightsOfTheJobsWhateverTheLengthsOfTheirSegments) {
  const std::uint64_t seed = protocol::test_seed(30);
  SCOPED_TRACE(protocol::seed_trace(seed));
  SeededRandom random(seed);
  for (unsigned i = 0; i < 3; ++i) add(one_, {.weight = 1}, 10'000);
  add(other_, {.weight = 3}, 10'000);
  for (unsigned sent = 0; sent < 1000;) {
    const auto limit = static_cast<unsigned>(1 + random.below(32));
    sent += static_cast<unsigned>(serve_with(limit, [&] {
                                    return static_cast<std::uint32_t>(1 + random.below(kQuantum));
                                  }).size());
  }
  const auto light = static_cast<double>(sent_bytes_[&one_.job()]);
  const auto heavy = static_cast<double>(sent_bytes_[&other_.job()]);
  EXPECT_NEAR(heavy / light, 3, 0.15);
}

TEST_F(FlowSchedulerTest, ServesAJobBehindOneThatWasWokenInVain) {
  Flow& vain = add(one_, {}, 1);
  Flow& ready = add(other_, {}, 1);
  EXPECT_EQ(serve(2).size(), 2u);
  scheduler_.wake(vain);
  give(ready, 1);
  EXPECT_EQ(count(serve(2), ready), 1u);
}

TEST_F(FlowSchedulerTest, GivesJobsOfEqualWeightTurnsOfOneSegmentWhateverTheWeight) {
  Flow& a = add(one_, {.weight = 1000}, 100);
  Flow& b = add(other_, {.weight = 1000}, 100);
  const auto sent = serve(4);
  EXPECT_EQ(count(sent, a), 2u);
  EXPECT_EQ(count(sent, b), 2u);
}

TEST_F(FlowSchedulerTest, LetsAJobThatWasAloneOweNothingOfWhatItHasSent) {
  Flow& busy = add(one_, {}, 1000);
  EXPECT_EQ(serve(500).size(), 500u);
  Flow& late = add(other_, {}, 1000);
  const auto sent = serve(20);
  EXPECT_NEAR(count(sent, busy), 10, 1);
  EXPECT_NEAR(count(sent, late), 10, 1);
}

TEST_F(FlowSchedulerTest, LetsAJobSaveNothingOfTheTurnsInWhichItHadNothingToSend) {
  Flow& seldom = add(one_, {.weight = 8}, 1);
  Flow& busy = add(other_, {}, 1000);
  // Of its first turn, seven segments are left over when it falls asleep.
  for (unsigned i = 0; i < 20; ++i) {
    EXPECT_EQ(serve(10).size(), 10u);
    give(seldom, 1);
  }
  give(seldom, 100);
  const auto sent = serve(18);
  EXPECT_NEAR(count(sent, seldom), 16, 1);
  EXPECT_NEAR(count(sent, busy), 2, 1);
}

TEST_F(FlowSchedulerTest, ServesTheLaneOfTheHighestPriorityFirst) {
  Flow& usual = add(one_, {.lane = 0, .priority = 0}, 2);
  Flow& last = add(one_, {.lane = 1, .priority = -4}, 1);
  Flow& urgent = add(one_, {.lane = 2, .priority = 7}, 2);
  Flow& as_usual = add(one_, {.lane = 3, .priority = 0}, 1);
  EXPECT_THAT(serve(3), ElementsAre(&urgent, &urgent, &usual));
  give(urgent, 1);
  EXPECT_THAT(serve(9), ElementsAre(&urgent, &usual, &as_usual, &last));
}

TEST_F(FlowSchedulerTest, ServesTheLaneOfTheHighestPriorityFirstInAJobsTurnToo) {
  Flow& rival = add(other_, {}, 100);
  Flow& usual = add(one_, {.lane = 0, .priority = 0}, 100);
  Flow& urgent = add(one_, {.lane = 1, .priority = 1}, 5);
  const auto sent = serve(20);
  EXPECT_NEAR(count(sent, rival), 10, 1);
  EXPECT_EQ(count(sent, urgent), 5u);
  const auto first = std::find(sent.begin(), sent.end(), &usual);
  EXPECT_EQ(std::find(first, sent.end(), &urgent), sent.end()) << "behind the usual one";
}

TEST_F(FlowSchedulerTest, ServesTheOldestCollectiveFirstWhateverItsStep) {
  Flow& newer = add(one_, {.step = 0}, 2, 5);
  Flow& oldest = add(one_, {.step = 2}, 2, 4);
  Flow& newest = add(one_, {.step = 1}, 1, 6);
  EXPECT_THAT(serve(2), ElementsAre(&oldest, &oldest));
  EXPECT_THAT(serve(9), ElementsAre(&newer, &newer, &newest));
}

TEST_F(FlowSchedulerTest, ServesNewerCollectivesWhileTheOldestHasNothingReady) {
  Flow& newer = add(one_, {.step = 0}, 1, 5);
  Flow& stuck = add(one_, {.step = 1}, 0, 4);
  scheduler_.wake(stuck);
  EXPECT_THAT(serve(9), ElementsAre(&newer));
}

TEST_F(FlowSchedulerTest, ServesTheStepsOfACollectiveInOrder) {
  Flow& second = add(one_, {.step = 1}, 1);
  Flow& results = add(one_, {.step = 2}, 1);
  Flow& first = add(one_, {.step = 0}, 2);
  EXPECT_THAT(serve(9), ElementsAre(&first, &first, &second, &results));
}

TEST_F(FlowSchedulerTest, RotatesOverTheFlowsOfAStep) {
  Flow& a = add(one_, {}, 3);
  Flow& b = add(one_, {}, 3);
  EXPECT_THAT(serve(3), ElementsAre(&a, &b, &a));
  EXPECT_THAT(serve(3), ElementsAre(&b, &a, &b));
}

TEST_F(FlowSchedulerTest, VisitsNoFlowThatSleeps) {
  std::vector<Flow*> flows;
  for (unsigned i = 0; i < 500; ++i) {
    flows.push_back(&add(one_, {.lane = i % 4, .step = i % 3}, 0));
    flows.push_back(&add(other_, {.lane = i % 4, .step = i % 3}, 0));
  }
  EXPECT_THAT(serve(32), IsEmpty());
  EXPECT_EQ(visits_, 0u);
  give(*flows[333], 2);
  EXPECT_THAT(serve(32), ElementsAre(flows[333], flows[333]));
  EXPECT_LE(visits_, 4u);
  visits_ = 0;
  EXPECT_THAT(serve(32), IsEmpty());
  EXPECT_EQ(visits_, 0u) << "what was found to have nothing sleeps";
}

TEST_F(FlowSchedulerTest, ServesShortCollectivesBeforeTheTurnsOfOthers) {
  add(one_, {}, 100);
  Flow& brief = add_short(other_, {}, 2);
  serve(1);
  EXPECT_THAT(serve_short(8, kQuantum / 10), ElementsAre(&brief, &brief));
  visits_ = 0;
  EXPECT_THAT(serve_short(8), IsEmpty());
  EXPECT_EQ(visits_, 0u) << "there is nothing short any more";
}

TEST_F(FlowSchedulerTest, ServesNoLongCollectiveOfAJobThatHasAShortOne) {
  Flow& lengthy = add(one_, {.lane = 0}, 3);
  Flow& brief = add_short(one_, {.lane = 1}, 1);
  EXPECT_THAT(serve_short(8), ElementsAre(&brief));
  EXPECT_THAT(serve(8), ElementsAre(&lengthy, &lengthy, &lengthy));
}

TEST_F(FlowSchedulerTest, KeepsTheSharesOfJobsWhateverTheyHaveOfShortCollectives) {
  add(one_, {.weight = 3}, 10'000);
  add_short(other_, {.weight = 1}, 10'000);
  for (unsigned round = 0; round < 500; ++round) {
    serve_short(2);
    serve(4);
  }
  EXPECT_NEAR(static_cast<double>(sent_bytes_[&one_.job()]) /
                  static_cast<double>(sent_bytes_[&other_.job()]),
              3, 0.15);
}

TEST_F(FlowSchedulerTest, ForgetsAJobsFlowsAndKeepsThoseOfOthersAwakeAndAsleep) {
  add(one_, {}, 5);
  LooseFlows third(3);
  Flow& awake = add(other_, {}, 2);
  Flow& asleep = add(third, {}, 0);
  scheduler_.remove_all_of(one_.job());
  EXPECT_THAT(serve(9), ElementsAre(&awake, &awake));
  give(asleep, 1);
  EXPECT_THAT(serve(9), ElementsAre(&asleep));
  scheduler_.remove_all_of(one_.job());
  scheduler_.remove_all_of(other_.job());
  scheduler_.remove_all_of(third.job());
  EXPECT_THAT(serve(9), IsEmpty());
}

}  // namespace
}  // namespace gradcube::dataplane
