// What one engine does of a job in each of its states, and what a failure leaves alone.

#include "tests/unit/dataplane/engine/engine_alone.h"

namespace gradcube::dataplane {
namespace {

using protocol::Stage;
using Kind = EngineEvent::Kind;

// Which collective of which lane a frame is about; each has one segment in either stage.
Frame about(Frame frame, std::uint32_t number, std::uint8_t lane) {
  frame.transport.sequence = number - 1;
  frame.transport.lane = lane;
  frame.segment.collective = number;
  return frame;
}

class EngineStates : public EngineAlone {
 protected:
  explicit EngineStates(unsigned lanes = 1)
      : EngineAlone(protocol::CreditSettings::kUnlimited, lanes) {}

  // All that server 1 sends of a collective of which server 0 has sent its contribution.
  void exchange(std::uint32_t number = 1, std::uint8_t lane = 0, std::uint16_t epoch = kEpoch) {
    Frame contributed = about(contribution(), number, lane);
    contributed.transport.epoch = epoch;
    contributed.transport.acknowledged = number;
    arrive(contributed);
    Frame result = about(contribution(0, 3.0F), number, lane);
    result.transport.epoch = epoch;
    result.transport.stage = Stage::broadcast;
    arrive(result);
    Frame acknowledgement = about(without_segment(Stage::broadcast), number + 1, lane);
    acknowledgement.transport.epoch = epoch;
    acknowledgement.transport.acknowledged = number;
    arrive(acknowledgement);
  }
  // A contribution of another operation.
  void disagree(std::uint32_t number, std::uint8_t lane = 0) {
    Frame other = about(contribution(), number, lane);
    other.segment.type_and_operation = 1;
    arrive(other);
  }
  static LaneCuts cut(const LaneCut& of_lane_0) {
    LaneCuts cuts;
    cuts[0].add(of_lane_0);
    return cuts;
  }
  std::vector<Kind> told() const {
    std::vector<Kind> kinds;
    for (const EngineEvent& event : events_.events) kinds.push_back(event.kind);
    return kinds;
  }
};

TEST_F(EngineStates, ArmedTakesFramesOfItsEpochAndNoSubmissionAndSendsNothing) {
  engine_->hold(kJob);
  engine_->reset(kJob, {}, kEpoch + 1);
  expect_dropped(DropReason::stale_epoch, contribution());
  submit(1.0F);
  Frame early = contribution();
  early.transport.epoch = kEpoch + 1;
  arrive(early);
  poll(100 * protocol::kMillisecond);
  EXPECT_EQ(engine_->counters().segments_received, 1u);
  EXPECT_EQ(session_->published(), 0u);
  EXPECT_TRUE(sent().empty()) << "not even what it owes";
  EXPECT_FALSE(engine_->busy()) << "it waits for the control thread";
  EXPECT_EQ(engine_->next_event(), kNever);

  engine_->start(kJob);
  poll();
  EXPECT_EQ(session_->published(), 1u);
  EXPECT_EQ(first_of_unit(0), 3.0F) << "what came early is added";
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_FALSE(frames.empty());
  for (const protocol::ParsedFrame& frame : frames) EXPECT_EQ(frame.transport.epoch, kEpoch + 1);
  EXPECT_EQ(frames[0].transport.acknowledged, 1u);
}

TEST_F(EngineStates, ArmedAnswersWhatItOwesAsSoonAsItStartsEvenWithoutASubmission) {
  engine_->halt(kJob);
  engine_->reset(kJob, {}, kEpoch + 1);
  Frame early = contribution();
  early.transport.epoch = kEpoch + 1;
  arrive(early);
  poll(100 * protocol::kMillisecond);
  engine_->start(kJob);
  EXPECT_TRUE(engine_->busy());
  EXPECT_LE(engine_->next_event(), now_);
  poll();
  bool acknowledged = false;
  for (const protocol::ParsedFrame& frame : sent()) {
    acknowledged = acknowledged || frame.transport.acknowledged == 1;
  }
  EXPECT_TRUE(acknowledged);
}

TEST_F(EngineStates, ArmedFailsWhatTheCutFailsAndRunningTheRestAsItIsTaken) {
  submit(1.0F);
  poll();
  engine_->halt(kJob);
  engine_->reset(kJob, cut({2, -3, 9}), kEpoch + 1);
  submit(1.0F);
  submit(1.0F);
  poll();
  EXPECT_EQ(session_->completed(0), 1u) << "only one was published";
  EXPECT_EQ(session_->region().completion(0).code, -3);
  EXPECT_FALSE(engine_->busy());
  engine_->start(kJob);
  poll();
  EXPECT_EQ(session_->completed(0), 2u);
  EXPECT_EQ(session_->region().completion(1).code, -3);
  EXPECT_EQ(session_->region().completion(1).notice, 9u);
  bool begun = false;
  for (const protocol::ParsedFrame& frame : sent()) begun = begun || frame.segment.collective == 3;
  EXPECT_TRUE(begun);
}

TEST_F(EngineStates, HeldTakesNoSubmissionAndCompletesWhatWasPublished) {
  submit(1.0F);
  poll();
  engine_->hold(kJob);
  submit(1.0F);
  poll(100 * protocol::kMillisecond);
  EXPECT_EQ(engine_->counters().resent, 1u) << "it still sees to what it has sent";
  EXPECT_TRUE(engine_->busy());
  exchange();
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_EQ(session_->region().completion(0).code, 0);
  EXPECT_EQ(session_->published(), 1u);
}

TEST_F(EngineStates, HeldBeginsWhatWasPublishedBefore) {
  submit(1.0F);
  ASSERT_EQ(session_->take(), Session::Take::taken);
  engine_->hold(kJob);
  poll();
  EXPECT_EQ(engine_->counters().segments_sent, 1u);
}

TEST_F(EngineStates, HaltedNeitherSendsNorTakesNorCompletes) {
  submit(1.0F);
  poll();
  sent();
  engine_->halt(kJob);
  submit(1.0F);
  expect_dropped(DropReason::job_not_running, contribution());
  // As another engine of the server does whose thread has ended, before it is halted too.
  session_->report(0, 0, 1);
  poll(100 * protocol::kMillisecond);
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(session_->published(), 1u);
  EXPECT_EQ(session_->completed(0), 0u);
  EXPECT_FALSE(engine_->busy()) << "it waits for the control thread";
  engine_->start(kJob);
  engine_->hold(kJob);
  poll();
  EXPECT_EQ(session_->completed(0), 0u) << "only a reset arms it again";
}

TEST_F(EngineStates, FailsWhatComesLateAsTheFirstResetThatReachedIt) {
  LaneCuts cuts;
  for (int reset = 1; reset <= 3; ++reset) {
    // The second cut fails nothing more, and so gives no reason.
    const std::uint64_t through = reset == 1 ? 2 : reset;
    cuts[0].add({through, -reset, static_cast<std::uint32_t>(reset)});
    engine_->halt(kJob);
    engine_->reset(kJob, cuts, kEpoch + reset);
  }
  engine_->start(kJob);
  for (int i = 0; i < 3; ++i) submit(1.0F);
  poll();
  ASSERT_EQ(session_->completed(0), 3u);
  for (const unsigned i : {0U, 1U, 2U}) {
    const std::uint32_t reset = i < 2 ? 1 : 3;
    EXPECT_EQ(session_->region().completion(i).code, -static_cast<std::int32_t>(reset)) << i;
    EXPECT_EQ(session_->region().completion(i).notice, reset) << i;
  }
}

TEST(CutsOfLane, OfVeryManyResetsHaveTheReasonsOfTheNewest) {
  CutsOfLane cuts;
  for (std::uint32_t reset = 1; reset <= 10; ++reset) cuts.add({2 * reset, -1, reset});
  EXPECT_EQ(cuts.through(), 20u);
  std::uint64_t through = 20 - 2 * CutsOfLane::kKept;
  for (const LaneCut& cut : cuts) {
    through += 2;
    EXPECT_EQ(cut.through, through);
    EXPECT_EQ(cut.notice, through / 2);
  }
}

TEST_F(EngineStates, StartsANewEpochWithFreshStreamsAfterAReset) {
  submit(1.0F);
  poll();
  sent();
  engine_->halt(kJob);
  engine_->reset(kJob, cut({1, -3, 9}), kEpoch + 1);
  engine_->start(kJob);
  poll();
  sent();
  EXPECT_EQ(session_->completed(0), 1u) << "what was in flight has failed";
  EXPECT_EQ(session_->region().completion(0).code, -3);
  EXPECT_EQ(session_->region().completion(0).notice, 9u);
  expect_dropped(DropReason::stale_epoch, contribution());
  submit(1.0F);
  poll();
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].transport.epoch, kEpoch + 1);
  EXPECT_EQ(frames[0].transport.sequence, 0u);
  EXPECT_EQ(frames[0].segment.collective, 2u);
}

TEST_F(EngineStates, ReportProgressOfAHeldJobUntilItIsTaken) {
  submit(1.0F);
  poll();
  exchange();
  ASSERT_EQ(session_->completed(0), 1u);
  submit(1.0F);
  poll();
  engine_->hold(kJob);
  poll();
  EXPECT_TRUE(told().empty()) << "nothing has completed since it is held";
  events_.refuses = true;
  exchange(2);
  ASSERT_EQ(session_->completed(0), 2u);
  poll(protocol::kAcknowledgeDelay);
  EXPECT_TRUE(engine_->busy());
  EXPECT_LE(engine_->next_event(), now_) << "nobody tells it when there is room";
  events_.refuses = false;
  poll();
  ASSERT_EQ(told(), std::vector<Kind>{Kind::progress});
  EXPECT_EQ(events_.events[0].job, kJob);
  EXPECT_EQ(events_.events[0].epoch, kEpoch);
  EXPECT_FALSE(engine_->busy());
  poll();
  EXPECT_EQ(told().size(), 1u) << "once";
}

TEST_F(EngineStates, ADisagreementLeavesWhatLiesBeforeItAlone) {
  submit(1.0F);
  submit(1.0F);
  poll();
  disagree(2);
  engine_->hold(kJob);
  exchange(1);
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_EQ(session_->region().completion(0).code, 0);
  exchange(2);
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_EQ(told(), (std::vector<Kind>{Kind::disagreement, Kind::progress}));
  EXPECT_EQ(events_.events[0].disagreement.collective, 2u);
}

TEST_F(EngineStates, TellADisagreementAgainIfItTurnsOutToBeginEarlier) {
  submit(1.0F);
  submit(1.0F);
  poll();
  disagree(2);
  poll();
  disagree(1);
  poll();
  ASSERT_EQ(told(), (std::vector<Kind>{Kind::disagreement, Kind::disagreement}));
  EXPECT_EQ(events_.events[0].disagreement.collective, 2u);
  EXPECT_EQ(events_.events[1].disagreement.collective, 1u);
}

TEST_F(EngineStates, TellADisagreementUntilItIsTakenAndAgainInTheNextEpoch) {
  submit(1.0F);
  poll();
  events_.refuses = true;
  disagree(1);
  events_.refuses = false;
  poll();
  poll();
  ASSERT_EQ(told(), std::vector<Kind>{Kind::disagreement});
  engine_->hold(kJob);
  engine_->reset(kJob, cut({1, -3, 9}), kEpoch + 1);
  engine_->start(kJob);
  submit(1.0F);
  poll();
  Frame other = about(contribution(), 1, 0);
  other.transport.epoch = kEpoch + 1;
  other.segment.collective = 2;
  other.segment.type_and_operation = 1;
  arrive(other);
  ASSERT_EQ(told(), (std::vector<Kind>{Kind::disagreement, Kind::disagreement}));
  EXPECT_EQ(events_.events[1].epoch, kEpoch + 1);
  EXPECT_EQ(events_.events[1].disagreement.collective, 2u);
}

class EngineWithTwoLanes : public EngineStates {
 protected:
  EngineWithTwoLanes() : EngineStates(2) {}
};

TEST_F(EngineWithTwoLanes, GoesOnInOneLaneAfterADisagreementInTheOther) {
  submit(1.0F, kElements, 0);
  submit(1.0F, kElements, 1);
  poll();
  disagree(1, 0);
  exchange(1, 1);
  EXPECT_EQ(session_->completed(1), 1u);
  EXPECT_EQ(session_->completed(0), 0u);
}

TEST_F(EngineWithTwoLanes, TellsOfADisagreementInEachLane) {
  submit(1.0F, kElements, 0);
  submit(1.0F, kElements, 1);
  poll();
  disagree(1, 1);
  disagree(1, 0);
  poll();
  ASSERT_EQ(told(), (std::vector<Kind>{Kind::disagreement, Kind::disagreement}));
  EXPECT_EQ(events_.events[0].disagreement.lane, 1u);
  EXPECT_EQ(events_.events[1].disagreement.lane, 0u);
}

TEST_F(EngineStates, TellAViolationOnce) {
  session_->region().header().submission_tail.store(1'000'000);
  events_.refuses = true;
  poll();
  events_.refuses = false;
  poll();
  poll();
  EXPECT_EQ(told(), std::vector<Kind>{Kind::violation});
}

TEST_F(EngineStates, CountWhatIsExchangedWithEachNeighbour) {
  const bcube::Hop neighbour{0, 1};
  const std::uint64_t before = engine_->neighbour(neighbour).received;
  submit(1.0F);
  poll();
  poll(100 * protocol::kMillisecond);
  expect_dropped(DropReason::stale_epoch, [] {
    Frame stale = contribution();
    --stale.transport.epoch;
    return stale;
  }());
  exchange();
  const std::uint64_t duplicates = engine_->counters().duplicates;
  arrive(contribution());
  EXPECT_EQ(engine_->counters().duplicates, duplicates + 1)
      << "it shows no life, and does not count";
  const NeighbourNumbers numbers = engine_->neighbour(neighbour);
  EXPECT_EQ(numbers.received - before, 3u);
  EXPECT_EQ(numbers.resent, 1u);
  EXPECT_EQ(numbers.acknowledged, 2u);
  EXPECT_EQ(engine_->neighbour({0, 0}).received, 0u) << "itself";
  EXPECT_EQ(engine_->neighbour({7, 1}).received, 0u);
}

}  // namespace
}  // namespace gradcube::dataplane
