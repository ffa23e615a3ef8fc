// One engine, turned by hand over ports whose wire is a list: what it sends, acknowledges and
// counts for each frame that it gets.

#include "dataplane/engine/engine.h"

#include <gtest/gtest.h>

#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {
namespace {

using protocol::FrameType;
using protocol::Stage;

constexpr protocol::JobId kJob = 77;
constexpr protocol::JobId kOtherJob = 78;
constexpr std::uint16_t kEpoch = 3;
constexpr unsigned kPerUnit = control::kUnitBytes / sizeof(float);
// star:2 has two pieces: the first is server 0's.
constexpr std::uint64_t kElements = 2 * kPerUnit;

// What a frame from server 1 to server 0 says; a test changes what it is about.
struct Frame {
  Frame() {
    routing.source = 1;
    routing.destination = 0;
    routing.hops[0] = {0, 0};
    transport.job = kJob;
    transport.epoch = kEpoch;
    transport.credit = 16;
    segment.length = control::kUnitBytes;
    segment.count = kElements;
    segment.collective = 1;
  }
  protocol::RoutingHeader routing;
  protocol::TransportHeader transport;
  protocol::SegmentHeader segment;
  bool is_segment = true;
  float value = 2.0F;
};

Frame contribution(std::uint32_t sequence = 0, float value = 2.0F) {
  Frame frame;
  frame.transport.sequence = sequence;
  frame.value = value;
  return frame;
}

Frame without_segment(Stage stage = Stage::aggregation) {
  Frame frame;
  frame.transport.stage = stage;
  frame.is_segment = false;
  return frame;
}

// Server 0 of star:2, with one job that runs.
class EngineAlone : public testing::Test {
 protected:
  explicit EngineAlone(std::uint64_t credit_budget = protocol::CreditSettings::kUnlimited)
      : packets_(make_pool("engine", 255)),
        frames_(make_pool("wire", 255, 512)),
        engine_(std::make_unique<Engine>(settings(credit_budget),
                                         control::parse_topology("star:2", "test").space(),
                                         std::vector<Port*>{&port_}, packets_, events_)) {
    attach(job_, *session_, kJob);
    engine_->start(kJob, kEpoch);
    poll();
    sent();  // the flows tell their neighbour of its credit
  }
  ~EngineAlone() override {
    engine_.reset();
    for (rte_mbuf* packet : port_.sent) rte_pktmbuf_free(packet);
    port_.sent.clear();
    EXPECT_EQ(packets_in_use(packets_), 0u) << "packets have leaked";
    EXPECT_EQ(packets_in_use(frames_), 0u) << "frames have leaked";
    EXPECT_EQ(job_->references(), 0u);
  }

  static EngineSettings settings(std::uint64_t credit_budget) {
    EngineSettings settings;
    settings.threads = {0};
    settings.segment_bytes = control::kUnitBytes;
    settings.credit_budget = credit_budget;
    return settings;
  }

  void attach(std::unique_ptr<EngineJob>& job, Session& session, std::uint32_t id) {
    job = engine_->prepare(id, session, bml_lanes("star:2"), 1, aggregation::select_kernels(512));
    engine_->attach(*job);
  }

  void submit(float value, std::uint64_t elements = kElements) {
    session_.fill(elements, value);
    session_.submit(elements);
  }
  float first_of_unit(unsigned unit) { return session_.buffer()[unit * kPerUnit]; }

  void poll(Nanoseconds later = 1000) { engine_->poll(now_ += later); }

  void arrive(const Frame& frame) {
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    const protocol::LinkAddresses link{{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}, 1, 2};
    bytes.resize(protocol::encode_frame(bytes, link, frame.routing, frame.transport,
                                        frame.is_segment ? &frame.segment : nullptr));
    if (frame.is_segment) {
      const std::vector<float> payload(frame.segment.length / sizeof(float), frame.value);
      const auto* begin = reinterpret_cast<const std::uint8_t*>(payload.data());
      bytes.insert(bytes.end(), begin, begin + frame.segment.length);
    }
    arrive(bytes);
  }
  void arrive(const std::vector<std::uint8_t>& bytes) {
    rte_mbuf* packet = frames_.allocate();
    ASSERT_NE(packet, nullptr);
    std::memcpy(rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    port_.arriving.push_back(packet);
    poll();
  }

  // The frames sent since the last call, parsed. Their packets are freed.
  std::vector<protocol::ParsedFrame> sent() {
    std::vector<protocol::ParsedFrame> frames;
    for (rte_mbuf* packet : port_.sent) {
      const std::span<const std::uint8_t> head{rte_pktmbuf_mtod(packet, const std::uint8_t*),
                                               packet->data_len};
      EXPECT_EQ(protocol::parse_frame(head, packet->pkt_len, frames.emplace_back()),
                protocol::FrameError::none);
      rte_pktmbuf_free(packet);
    }
    port_.sent.clear();
    return frames;
  }

  std::uint64_t dropped(DropReason reason) const {
    return engine_->counters().dropped[static_cast<std::size_t>(reason)];
  }
  void expect_dropped(DropReason reason, const Frame& frame) {
    const std::uint64_t before = dropped(reason);
    arrive(frame);
    EXPECT_EQ(dropped(reason), before + 1) << name(reason);
    EXPECT_EQ(packets_in_use(frames_), 0u) << name(reason);
  }

  PacketPool packets_;
  PacketPool frames_;
  FakePort port_;
  Events events_;
  TestSession session_{1};
  std::unique_ptr<EngineJob> job_;
  std::unique_ptr<Engine> engine_;
  Nanoseconds now_ = 1'000'000;
};

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

TEST_F(EngineAlone, NeitherSendsNorTakesWhileFrozen) {
  engine_->freeze(kJob);
  submit(1.0F);
  poll();
  EXPECT_TRUE(sent().empty());
  EXPECT_EQ(session_->published(), 0u);
  expect_dropped(DropReason::job_not_running, contribution());
}

TEST_F(EngineAlone, StartsANewEpochWithFreshStreamsAfterAReset) {
  submit(1.0F);
  poll();
  sent();
  engine_->freeze(kJob);
  engine_->reset(kJob, {LaneCut{1, -3, 9}});
  engine_->start(kJob, kEpoch + 1);
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
  for (rte_mbuf* one : all) rte_pktmbuf_free(one);
  poll();
  EXPECT_EQ(sent().size(), 1u);
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
