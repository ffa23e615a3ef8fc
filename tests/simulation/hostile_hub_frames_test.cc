// Frames that claim to be of a job's hub: each is counted by its reason and dropped, and the hub's
// weights stay right.

#include <cstring>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "dataplane/host/packet_pool.h"
#include "protocol/wire.h"
#include "tests/simulation/forgery.h"
#include "tests/simulation/hub_job.h"
#include "tests/simulation/work.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::simulation {
namespace {

using dataplane::DropReason;

constexpr std::uint8_t kGradients = 19;
constexpr std::uint8_t kWeights = 20;

class HostileHubFrames : public testing::Test {
 protected:
  HostileHubFrames() {
    dataplane::PacketPoolOptions options;
    options.name = "hostile";
    options.count = 1023;
    options.frame_bytes = 9014;
    options.cache = 0;
    frames_ = std::make_unique<dataplane::PacketPool>(options);
  }
  void TearDown() override {
    leave_all(cluster_, job_.trainers());
    EXPECT_EQ(dataplane::packets_in_use(*frames_), 0u) << "hostile frames have leaked";
  }

  // A segment of the first chunk of hub 1, from server 1 to server 0.
  Forgery segment(std::uint8_t kind, protocol::Stage stage = protocol::Stage::aggregation) {
    const dataplane::JobFacts facts = cluster_.jobs()[0];
    Forgery forgery;
    forgery.routing.source = 1;
    forgery.routing.destination = 0;
    forgery.routing.hops[0] = {0, 0};
    forgery.transport.job = facts.id;
    forgery.transport.epoch = static_cast<std::uint16_t>(facts.epoch);
    forgery.transport.thread = protocol::kFirstHubThread;
    forgery.transport.lane = 1;
    forgery.transport.stage = stage;
    forgery.is_segment = true;
    forgery.segment.kind = kind;
    forgery.segment.root = 1;  // the round
    forgery.payload.assign(64, 0xee);
    forgery.segment.length = 64;
    return forgery;
  }
  void inject(const Forgery& forgery) {
    const std::vector<std::uint8_t> bytes = forgery.bytes(false);
    rte_mbuf* packet = frames_->allocate();
    ASSERT_NE(packet, nullptr);
    std::memcpy(rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    cluster_.inject(packet);
    cluster_.iterate();
  }
  void expect_dropped(DropReason reason, const Forgery& forgery) {
    const auto count = [&] {
      return cluster_.counters().dropped[static_cast<std::size_t>(reason)];
    };
    const std::uint64_t before = count();
    inject(forgery);
    EXPECT_EQ(count(), before + 1) << name(reason);
  }
  void expect_trained() {
    const auto push = [&](shared::PushKind kind, float value) {
      job_.push_all(kind, [value](unsigned, std::uint32_t, std::uint64_t) { return value; });
    };
    push(shared::PushKind::weights, 8);
    push(shared::PushKind::gradients, 2);
    const std::vector<float> expected(kElements, 7);
    for (const auto& trainer : job_.trainers()) {
      const std::vector<std::uint8_t> bytes = job_.weights(*trainer);
      EXPECT_EQ(std::memcmp(bytes.data(), expected.data(), bytes.size()), 0) << trainer->rank();
    }
  }

  static constexpr std::uint64_t kElements = 4096;

  SimulatedCluster cluster_{settings_of({{"topology", "bcube:2,2"}, {"mtu", "1500"}})};
  std::unique_ptr<dataplane::PacketPool> frames_;
  HubJob job_{cluster_, {{"key", kElements, aggregation::DataType::float32}}, "sgd:lr=0.5"};
};

TEST_F(HostileHubFrames, AreOfNoHubWhereThereIsNone) {
  expect_dropped(DropReason::no_hub, segment(kGradients));
  expect_dropped(DropReason::no_hub, segment(kWeights, protocol::Stage::broadcast));
  job_.make();
  for (const std::uint8_t lane : {0, 2, 7}) {
    Forgery other = segment(kGradients);
    other.transport.lane = lane;
    expect_dropped(DropReason::no_hub, other);
  }
  expect_trained();
  job_.end();
  cluster_.run_for(kMillisecond);
  expect_dropped(DropReason::no_hub, segment(kGradients));
}

// With each length, so also with the right one: of that the unchanged frame is taken, once. Before
// the first round, in which a flow still takes the sequence numbers from 0 on.
TEST_F(HostileHubFrames, AreDroppedForOneFieldThatDoesNotFit) {
  job_.make();
  const std::vector<std::function<void(Forgery&)>> changes = {
      [](Forgery& f) { f.segment.kind = 0; },
      [](Forgery& f) { f.segment.kind = 18; },
      [](Forgery& f) { f.segment.kind = 22; },
      [](Forgery& f) { f.segment.root = 0; },
      [](Forgery& f) { f.segment.root = 2; },
      [](Forgery& f) { f.segment.root = 129; },
      [](Forgery& f) { f.segment.collective = 1; },
      [](Forgery& f) { f.segment.count = 1000; },
      [](Forgery& f) { f.transport.stage = protocol::Stage::broadcast; },
  };
  const auto unfitting = [&] {
    return cluster_.counters().dropped[static_cast<std::size_t>(DropReason::unfitting_chunk)];
  };
  unsigned taken = 0;
  for (std::uint16_t length = 64; length <= 1408; length += 4) {
    Forgery forgery = segment(kGradients);
    forgery.transport.sequence = taken;
    forgery.segment.length = length;
    forgery.payload.assign(length, 0xee);
    for (const auto& change : changes) {
      Forgery changed = forgery;
      change(changed);
      expect_dropped(DropReason::unfitting_chunk, changed);
    }
    const std::uint64_t before = unfitting();
    inject(forgery);
    taken += unfitting() == before ? 1 : 0;
  }
  EXPECT_EQ(taken, 1U);
}

// Whatever sequence numbers they have: those that the flow still takes are the hub's to refuse.
TEST_F(HostileHubFrames, OfRoundsThatHaveEndedChangeNothing) {
  job_.make();
  expect_trained();
  const auto unfitting = [&] {
    return cluster_.counters().dropped[static_cast<std::size_t>(DropReason::unfitting_chunk)];
  };
  const std::uint64_t before = unfitting();
  for (const std::uint32_t round : {1, 2}) {
    for (std::uint32_t sequence = 0; sequence < 64; ++sequence) {
      Forgery replayed = segment(kGradients);
      replayed.transport.sequence = sequence;
      replayed.segment.root = round;
      replayed.payload.assign(1024, 0xee);
      replayed.segment.length = 1024;
      inject(replayed);
    }
  }
  EXPECT_GT(unfitting(), before);
  expect_trained();
}

TEST_F(HostileHubFrames, DoNotFitAndAreDropped) {
  job_.make();
  const auto expect_unfitting = [&](std::uint8_t kind,
                                    const std::function<void(Forgery&)>& change) {
    for (const auto stage : {protocol::Stage::aggregation, protocol::Stage::broadcast}) {
      Forgery forgery = segment(kind, stage);
      change(forgery);
      expect_dropped(DropReason::unfitting_chunk, forgery);
    }
  };
  for (const std::uint8_t kind : {0, 6, 18, 22, 255}) expect_unfitting(kind, [](Forgery&) {});
  for (const std::uint8_t kind : {kGradients, kWeights}) {
    expect_unfitting(kind, [](Forgery& f) { f.segment.collective = UINT32_MAX; });
    expect_unfitting(kind, [](Forgery& f) { f.segment.count = UINT32_MAX; });
    expect_unfitting(kind, [](Forgery& f) { f.segment.root = 2; });
    expect_unfitting(kind, [](Forgery&) {});  // of another length
  }
  expect_trained();
}

TEST_F(HostileHubFrames, OfOtherServersAndThreadsAreDropped) {
  job_.make();
  cluster_.run_for(kMillisecond);
  const auto before = cluster_.counters().dropped;
  Forgery stranger = segment(kGradients);
  stranger.routing.source = 3;
  inject(stranger);
  Forgery thread = segment(kGradients);
  thread.transport.thread = protocol::kMailThread - 1;
  inject(thread);
  const auto after = cluster_.counters().dropped;
  std::uint64_t dropped = 0;
  for (std::size_t reason = 0; reason < after.size(); ++reason) {
    dropped += after[reason] - before[reason];
  }
  EXPECT_EQ(dropped, 2U);
  expect_trained();
}

}  // namespace
}  // namespace gradcube::simulation
