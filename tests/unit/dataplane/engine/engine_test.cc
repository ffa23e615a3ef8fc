// One engine, turned by hand over ports whose wire is a list: what it sends, acknowledges and
// counts for each frame that it gets.

#include "dataplane/engine/engine.h"

#include "tests/unit/dataplane/engine/engine_alone.h"

namespace gradcube::dataplane {
namespace {

using protocol::FrameType;
using protocol::Stage;

TEST_F(EngineAlone, SendsASubmissionsSegmentOutOfTheTrainersMemory) {
  submit(1.0F);
  poll();
  ASSERT_EQ(port_.sent.size(), 1u);
  const rte_mbuf* payload = port_.sent.front()->next;
  ASSERT_NE(payload, nullptr);
  EXPECT_EQ(rte_pktmbuf_mtod(payload, float*), session_.buffer() + kPerUnit) << "server 1's piece";
  EXPECT_EQ(job_->references(), 1u);
  const protocol::ParsedFrame frame = sent().front();
  EXPECT_EQ(job_->references(), 0u);
  EXPECT_EQ(frame.type, FrameType::segment);
  EXPECT_EQ(frame.routing.source, 0u);
  EXPECT_EQ(frame.routing.destination, 1u);
  EXPECT_EQ(frame.transport.job, kJob);
  EXPECT_EQ(frame.transport.epoch, kEpoch);
  EXPECT_EQ(frame.transport.stage, Stage::aggregation);
  EXPECT_EQ(frame.transport.sequence, 0u);
  EXPECT_EQ(frame.segment.collective, 1u);
  EXPECT_EQ(frame.segment.length, control::kUnitBytes);
  EXPECT_EQ(frame.segment.count, kElements);
  EXPECT_EQ(engine_->counters().segments_sent, 1u);
}

TEST_F(EngineAlone, AddsAContributionAndBroadcastsTheResult) {
  submit(1.0F);
  poll();
  sent();
  arrive(contribution());
  EXPECT_EQ(first_of_unit(0), 3.0F);
  EXPECT_EQ(first_of_unit(1), 1.0F);
  EXPECT_EQ(engine_->counters().segments_received, 1u);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::segment);
  EXPECT_EQ(frames[0].transport.stage, Stage::broadcast);
}

TEST_F(EngineAlone, WritesAResultIntoTheTrainersBuffer) {
  submit(1.0F);
  poll();
  Frame result = contribution(0, 9.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  EXPECT_EQ(first_of_unit(1), 9.0F);
  EXPECT_EQ(first_of_unit(0), 1.0F);
  EXPECT_EQ(packets_in_use(frames_), 0u) << "a result is not held";
}

TEST_F(EngineAlone, CompletesACollectiveWhenBothStagesAreAcknowledged) {
  submit(1.0F);
  poll();
  Frame contributed = contribution();
  contributed.transport.acknowledged = 1;
  arrive(contributed);
  Frame result = contribution(0, 3.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  EXPECT_EQ(session_->completed(0), 0u) << "this server's own result is not acknowledged";
  Frame acknowledgement = without_segment(Stage::broadcast);
  acknowledgement.transport.acknowledged = 1;
  acknowledgement.transport.sequence = 1;
  arrive(acknowledgement);
  EXPECT_EQ(session_->completed(0), 1u);
  EXPECT_EQ(engine_->counters().collectives, 1u);
  poll(protocol::kAcknowledgeDelay);
  EXPECT_FALSE(engine_->busy());
}

TEST_F(EngineAlone, TakesAResultForTheAcknowledgementOfItsContribution) {
  submit(1.0F);
  poll();
  arrive(contribution());
  Frame result = contribution(0, 3.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  Frame acknowledgement = without_segment(Stage::broadcast);
  acknowledgement.transport.acknowledged = 1;
  acknowledgement.transport.sequence = 1;
  arrive(acknowledgement);
  EXPECT_EQ(session_->completed(0), 1u);
  sent();
  poll(1000 * protocol::kMillisecond);
  for (const protocol::ParsedFrame& frame : sent()) EXPECT_FALSE(frame.is_segment) << "sent again";
}

TEST_F(EngineAlone, DoesNotTakeAResultForTheAcknowledgementOfWhatItHasNotSent) {
  port_.room = 0;
  submit(1.0F);
  poll();
  Frame result = contribution(0, 3.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  arrive(contribution());
  EXPECT_EQ(engine_->counters().segments_sent, 0u);
  EXPECT_EQ(session_->completed(0), 0u);
}

TEST_F(EngineAlone, AcknowledgesTheLastResultAtOnce) {
  submit(1.0F);
  poll();
  arrive(contribution());
  sent();  // its own result among them
  Frame result = contribution(0, 3.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::acknowledgement);
  EXPECT_EQ(frames[0].transport.stage, Stage::broadcast);
  EXPECT_EQ(frames[0].transport.acknowledged, 1u);
}

TEST_F(EngineAlone, LetsItsOwnResultCarryTheAcknowledgementOfTheOther) {
  submit(1.0F);
  poll();
  sent();
  Frame result = contribution(0, 3.0F);
  result.transport.stage = Stage::broadcast;
  arrive(result);
  EXPECT_TRUE(sent().empty()) << "its own result is still to come";
  arrive(contribution());
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::segment);
  EXPECT_EQ(frames[0].transport.acknowledged, 1u);
}

TEST_F(EngineAlone, AcknowledgesByAFrameOfItsOwnAfterTheDelay) {
  arrive(contribution());
  EXPECT_TRUE(sent().empty()) << "a segment might carry it";
  EXPECT_TRUE(engine_->busy());
  poll(protocol::kAcknowledgeDelay);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::acknowledgement);
  EXPECT_EQ(frames[0].transport.acknowledged, 1u);
  EXPECT_FALSE(engine_->busy());
}

TEST_F(EngineAlone, CountsADuplicateAndAcknowledgesItAtOnce) {
  arrive(contribution());
  poll(protocol::kAcknowledgeDelay);
  sent();
  arrive(contribution());
  EXPECT_EQ(engine_->counters().duplicates, 1u);
  EXPECT_EQ(engine_->counters().segments_received, 1u);
  ASSERT_EQ(sent().size(), 1u);
  EXPECT_EQ(packets_in_use(frames_), 1u) << "the first waits for the trainer";
}

TEST_F(EngineAlone, AnswersAProbe) {
  std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
  const Frame frame = without_segment();
  const protocol::LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 1, 2};
  const protocol::FrameTemplate made(link, frame.routing, frame.transport);
  bytes.resize(made.write_probe(bytes, frame.transport));
  arrive(bytes);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::acknowledgement);
}

TEST_F(EngineAlone, SendsAgainWhatIsNotAcknowledged) {
  submit(1.0F);
  poll();
  ASSERT_EQ(sent().size(), 1u);
  poll(100 * protocol::kMillisecond);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].transport.sequence, 0u);
  EXPECT_EQ(frames[0].type, FrameType::segment);
  EXPECT_EQ(engine_->counters().resent, 1u);
  EXPECT_EQ(engine_->counters().segments_sent, 1u);
}

TEST_F(EngineAlone, DropsAndCountsWhatDoesNotFit) {
  const auto with = [](const std::function<void(Frame&)>& change) {
    Frame frame = contribution();
    change(frame);
    return frame;
  };
  expect_dropped(DropReason::not_for_this_server,
                 with([](Frame& f) { f.routing.destination = 2; }));
  expect_dropped(DropReason::unknown_job, with([](Frame& f) { f.transport.job ^= 0x100; }));
  expect_dropped(DropReason::stale_epoch, with([](Frame& f) { --f.transport.epoch; }));
  expect_dropped(DropReason::foreign_thread, with([](Frame& f) { f.transport.thread = 1; }));
  expect_dropped(DropReason::foreign_thread, with([](Frame& f) { f.transport.lane = 1; }));
  expect_dropped(DropReason::not_a_neighbour, with([](Frame& f) { f.routing.source = 2; }));
  expect_dropped(DropReason::outside_window, with([](Frame& f) { f.transport.sequence = 500; }));
  expect_dropped(DropReason::bad_acknowledgement,
                 with([](Frame& f) { f.transport.acknowledged = 1; }));
  EXPECT_EQ(engine_->counters().segments_received, 0u);
  EXPECT_TRUE(events_.events.empty());
}

TEST_F(EngineAlone, CountsWhatIsNoFrame) {
  arrive(std::vector<std::uint8_t>(100, 0));
  EXPECT_EQ(
      engine_->counters().malformed[static_cast<std::size_t>(protocol::FrameError::not_gradcube)],
      1u);
  EXPECT_EQ(packets_in_use(frames_), 0u);
}

TEST_F(EngineAlone, ReportsADisagreementOnce) {
  submit(1.0F);
  poll();
  Frame other = contribution();
  other.segment.type_and_operation = 1;
  arrive(other);
  poll();
  ASSERT_EQ(events_.events.size(), 1u);
  EXPECT_EQ(events_.events[0].kind, EngineEvent::Kind::disagreement);
  EXPECT_EQ(events_.events[0].job, kJob);
  EXPECT_EQ(events_.events[0].epoch, kEpoch);
  EXPECT_EQ(events_.events[0].disagreement.peer, 1u);
  EXPECT_EQ(first_of_unit(0), 1.0F);
}

TEST_F(EngineAlone, PutsSendsOffWhileThePoolIsEmpty) {
  std::vector<rte_mbuf*> all;
  for (rte_mbuf* one = packets_.allocate(); one != nullptr; one = packets_.allocate()) {
    all.push_back(one);
  }
  submit(1.0F);
  poll();
  EXPECT_TRUE(port_.sent.empty());
  EXPECT_GT(engine_->counters().no_packet_memory, 0u);
  EXPECT_EQ(engine_->counters().segments_sent, 0u);
  EXPECT_LE(engine_->next_event(), now_) << "nobody tells it of free packets: it must look again";
  for (rte_mbuf* one : all) rte_pktmbuf_free(one);
  poll();
  EXPECT_EQ(sent().size(), 1u);
  EXPECT_GT(engine_->next_event(), now_) << "its timers are later";
}

TEST_F(EngineAlone, AnswersWhileThereIsNoPacketForASegment) {
  std::vector<rte_mbuf*> all;
  for (rte_mbuf* one = packets_.allocate(); one != nullptr; one = packets_.allocate()) {
    all.push_back(one);
  }
  submit(1.0F);
  poll();
  EXPECT_TRUE(port_.sent.empty()) << "its own segment has to wait";
  arrive(contribution());
  poll(protocol::kAcknowledgeDelay);
  const std::vector<protocol::ParsedFrame> frames = sent();
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].type, FrameType::acknowledgement);
  EXPECT_EQ(frames[0].transport.acknowledged, 1u);
  for (rte_mbuf* one : all) rte_pktmbuf_free(one);
}

TEST_F(EngineAlone, SendsNoMoreSegmentsOfAJobThanItHasReservedPacketsFor) {
  std::unique_ptr<EngineJob> small;
  TestSession session(1);
  attach(small, *session, kOtherJob, {32, *share_.reserve(3)});
  engine_->start(kOtherJob);
  poll();
  sent();
  session.fill(64 * kPerUnit, 1.0F);
  session.submit(64 * kPerUnit);
  poll();
  Frame grant = without_segment();
  grant.transport.job = kOtherJob;
  grant.transport.credit = 32;
  arrive(grant);
  poll();
  EXPECT_EQ(small->references(), 3u) << "of the 32 that its neighbour has granted";
  EXPECT_EQ(packets_in_use(packets_), kPacketsPerSegment * 3);
  submit(1.0F);
  poll();
  EXPECT_EQ(job_->references(), 1u) << "it keeps no other job from sending";
  sent();
  poll();
  EXPECT_EQ(small->references(), 3u) << "as soon as packets come back, the next ones leave";
  engine_->detach(kOtherJob);
  sent();
  EXPECT_EQ(small->references(), 0u);
}

TEST_F(EngineAlone, CountsSegmentsWithoutBytesToo) {
  session_.submit(0, control::CollectiveKind::barrier);
  poll();
  EXPECT_EQ(job_->references(), 1u);
  EXPECT_EQ(sent().size(), 1u);
  EXPECT_EQ(job_->references(), 0u);
}

// A poller subtracts the present time from it; and it need not stay awake, since who makes room
// wakes it.
TEST_F(EngineAlone, CallsAnAnswerDueOnceThereIsRoomForIt) {
  submit(1.0F);
  poll();
  sent();
  port_.room = 0;
  Frame probe = without_segment();
  std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
  const protocol::LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 1, 2};
  bytes.resize(protocol::FrameTemplate(link, probe.routing, probe.transport)
                   .write_probe(bytes, probe.transport));
  arrive(bytes);
  EXPECT_GT(engine_->next_event(), now_) << "it has to answer, and there is no room";
  port_.room = 64;
  EXPECT_LE(engine_->next_event(), now_);
  EXPECT_GE(engine_->next_event(), 0);
}

// A port whose calls cost as much as many packets.
class EngineOnADearPort : public EngineAlone {
 protected:
  EngineOnADearPort()
      : EngineAlone(protocol::CreditSettings::kUnlimited, 1, nullptr, nullptr, kPerIteration) {}
  static constexpr std::uint16_t kPerIteration = 3 * Port::kBurst;
};

TEST_F(EngineAlone, ReceivesOneBurstInAnIteration) {
  for (unsigned i = 0; i < Port::kBurst + 7; ++i) port_.arriving.push_back(frames_.allocate());
  poll();
  EXPECT_EQ(port_.arriving.size(), 7u);
  poll();
  EXPECT_EQ(port_.arriving.size(), 0u);
}

TEST_F(EngineOnADearPort, ReceivesAsManyBurstsInAnIterationAsThePortWants) {
  for (unsigned i = 0; i < kPerIteration + 7U; ++i) port_.arriving.push_back(frames_.allocate());
  poll();
  EXPECT_EQ(port_.arriving.size(), 7u);
  poll();
  EXPECT_EQ(port_.arriving.size(), 0u);
}

// A port whose budget is four segments: credit follows what senders ask for.
class EngineWithABudget : public EngineAlone {
 protected:
  EngineWithABudget() : EngineAlone(4 * (control::kUnitBytes + protocol::kSegmentHeaderBytes)) {}

  std::uint64_t limit() {
    return job_->executors().front().flow(Stage::aggregation, 0, 1).receive.limit();
  }

  TestSession other_session_{1};
  std::unique_ptr<EngineJob> other_job_;
};

TEST_F(EngineWithABudget, KeepsWhatASenderAskedForWhenOtherJobsComeAndGo) {
  submit(1.0F, 64 * kPerUnit);
  poll();
  Frame first = contribution(0);
  first.segment.count = 64 * kPerUnit;
  first.transport.backlog = 30;
  arrive(first);
  const std::uint64_t granted = limit();
  EXPECT_GT(granted, 2u) << "it asked for more than the floor";
  attach(other_job_, *other_session_, kOtherJob);
  engine_->detach(kOtherJob);
  // The next segment makes room for one more. Its sender asks for nothing new.
  Frame second = contribution(1);
  second.segment.count = 64 * kPerUnit;
  arrive(second);
  EXPECT_GT(limit(), granted);
}

}  // namespace
}  // namespace gradcube::dataplane
