// One engine, turned by hand over ports whose wire is a list: server 0 of star:2, whose neighbour
// is the test.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_ALONE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_ALONE_H_

#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <utility>
#include <vector>

#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {

inline constexpr protocol::JobId kJob = 77;
inline constexpr protocol::JobId kOtherJob = 78;
inline constexpr std::uint16_t kEpoch = 3;
inline constexpr unsigned kPerUnit = control::kUnitBytes / sizeof(float);
// star:2 has two pieces: the first is server 0's.
inline constexpr std::uint64_t kElements = 2 * kPerUnit;

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

inline Frame contribution(std::uint32_t sequence = 0, float value = 2.0F) {
  Frame frame;
  frame.transport.sequence = sequence;
  frame.value = value;
  return frame;
}

inline Frame without_segment(protocol::Stage stage = protocol::Stage::aggregation) {
  Frame frame;
  frame.transport.stage = stage;
  frame.is_segment = false;
  return frame;
}

// With one job that runs.
class EngineAlone : public testing::Test {
 protected:
  explicit EngineAlone(std::uint64_t credit_budget = protocol::CreditSettings::kUnlimited,
                       unsigned lanes = 1, const ClusterKeys* keys = nullptr,
                       MessageInbox* inbox = nullptr, std::uint16_t per_iteration = Port::kBurst)
      : packets_(make_pool("engine", 255)),
        answers_(make_pool("answers", 255)),
        frames_(make_pool("wire", 255, 512)),
        port_(per_iteration),
        credit_({credit_budget, kSegmentFrameBytes}),
        session_(1, 1 << 16, lanes),
        engine_(std::make_unique<Engine>(settings(keys, inbox),
                                         control::parse_topology("star:2", "test").space(),
                                         std::vector<EnginePort>{{&port_, &credit_}},
                                         EnginePools{packets_, answers_}, events_)) {
    attach(job_, *session_, kJob);
    engine_->start(kJob);
    poll();
    sent();  // the flows tell their neighbour of its credit
  }
  ~EngineAlone() override {
    engine_.reset();
    for (rte_mbuf* packet : port_.sent) rte_pktmbuf_free(packet);
    port_.sent.clear();
    EXPECT_EQ(packets_in_use(packets_), 0u) << "packets have leaked";
    EXPECT_EQ(packets_in_use(answers_), 0u) << "answers have leaked";
    EXPECT_EQ(packets_in_use(frames_), 0u) << "frames have leaked";
    EXPECT_EQ(job_->references(), 0u);
  }

  // Of the longest segment, in the switch.
  static constexpr std::uint32_t kSegmentFrameBytes =
      control::kUnitBytes + protocol::kSegmentHeaderBytes;

  static EngineSettings settings(const ClusterKeys* keys, MessageInbox* inbox) {
    EngineSettings settings;
    settings.keys = keys;
    settings.inbox = inbox;
    settings.threads = {0};
    settings.segment_bytes = control::kUnitBytes;
    return settings;
  }

  void attach(std::unique_ptr<EngineJob>& job, Session& session, std::uint32_t id) {
    attach(job, session, id, packets(session.lanes()));
  }
  void attach(std::unique_ptr<EngineJob>& job, Session& session, std::uint32_t id,
              JobPackets packets) {
    job = engine_->prepare(id, session, bml_lanes("star:2", session.lanes()), 1,
                           aggregation::select_kernels(512), std::move(packets));
    engine_->attach(*job, kEpoch);
  }

  // The default window, for the two flows of each lane.
  JobPackets packets(unsigned lanes) {
    const unsigned window = EngineSettings{}.window;
    return {window, *share_.reserve(2 * lanes * window)};
  }

  void submit(float value, std::uint64_t elements = kElements, std::uint8_t lane = 0) {
    session_.fill(elements, value);
    session_.submit(elements, control::CollectiveKind::all_reduce, lane);
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
  PacketPool answers_;
  PacketPool frames_;
  PacketShare share_{10'000};
  FakePort port_;
  protocol::PortCredit credit_;
  Events events_;
  TestSession session_;
  std::unique_ptr<EngineJob> job_;
  std::unique_ptr<Engine> engine_;
  Nanoseconds now_ = 1'000'000;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_ENGINE_ALONE_H_
