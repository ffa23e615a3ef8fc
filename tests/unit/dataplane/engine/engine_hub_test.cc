// A hub on two engines, turned by hand, each with a trainer: what one sends, the other gets.

#include <array>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"
#include "tests/unit/dataplane/engine/small_hub.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

constexpr protocol::JobId kHubJob = 77;
constexpr std::uint16_t kHubEpoch = 3;
constexpr std::uint64_t kKeyElements = 64;  // of key "a"

class EngineHubs : public testing::Test {
 protected:
  EngineHubs() {
    for (const bcube::ServerId server : {0U, 1U}) start(server);
    exchange();
  }
  ~EngineHubs() override {
    for (Server& server : servers_) {
      server.engine.reset();
      for (auto* packets : {&server.port.sent, &server.port.arriving}) {
        for (rte_mbuf* packet : *packets) rte_pktmbuf_free(packet);
        packets->clear();
      }
    }
    for (Server& server : servers_) {
      EXPECT_EQ(server.job->references(), 0U);
      EXPECT_EQ(packets_in_use(server.packets), 0U) << "packets have leaked";
      EXPECT_EQ(packets_in_use(server.answers), 0U) << "answers have leaked";
    }
  }

  struct Server {
    explicit Server(bcube::ServerId id)
        : packets(make_pool("hub" + std::to_string(id), 511)),
          answers(make_pool("answer" + std::to_string(id), 511)) {}

    PacketPool packets;
    PacketPool answers;
    PacketShare share{10'000};
    FakePort port;
    Events events;
    protocol::PortCredit credit{{}};
    TestSession session{1};
    std::unique_ptr<EngineJob> job;
    std::unique_ptr<Engine> engine;
    std::uint64_t submitted = 0;
    std::uint64_t ended = 0;
  };

  void start(bcube::ServerId id) {
    Server& server = servers_.emplace_back(id);
    EngineSettings settings;
    settings.server = id;
    settings.threads = {0};
    settings.segment_bytes = control::kUnitBytes;
    server.engine =
        std::make_unique<Engine>(settings, control::parse_topology("star:2", "test").space(),
                                 std::vector<EnginePort>{{&server.port, &server.credit}},
                                 EnginePools{server.packets, server.answers}, server.events);
    const unsigned window = EngineSettings{}.window;
    server.job = server.engine->prepare(kHubJob, *server.session, bml_lanes("star:2"), 1,
                                        aggregation::select_kernels(512),
                                        {window, *server.share.reserve(2 * window)});
    server.engine->attach(*server.job, kHubEpoch);
    server.engine->start(kHubJob);
  }

  // Returns what only the engine has then.
  std::weak_ptr<ServerHub> attach(unsigned at, std::uint32_t number = 1) {
    Server& server = servers_[at];
    std::shared_ptr<ServerHub> hub = small_hub(number, 1, at);
    flows_ = server.engine->check_hub(hub->model(), hub->shape());
    auto part = server.engine->prepare_hub(*server.job, hub, *server.share.reserve(64));
    server.session->set_hub(*hub);
    server.engine->attach_hub(*server.job, std::move(part));
    return hub;
  }
  void attach_both(std::uint32_t number = 1) {
    for (const unsigned at : {0U, 1U}) attach(at, number);
  }
  void detach(unsigned at) {
    servers_[at].session->end_hub(GRADCUBE_EINVAL);
    servers_[at].engine->detach_hub(*servers_[at].job);
  }

  // A push of key "a", each element with this value.
  void push(unsigned at, float value, shared::PushKind kind = shared::PushKind::gradients,
            std::uint32_t number = 1, double rate = kHubRate) {
    Server& server = servers_[at];
    server.session.fill(kKeyElements, value);
    shared::Submission entry = small_push(100 * at + server.submitted, 0, kind);
    entry.push.hub = number;
    if (kind == shared::PushKind::gradients) entry.push.rate = rate;
    submission_entry(server.session->region(), server.submitted++) = entry;
    server.session->region().header().submission_tail.store(server.submitted);
  }
  // The codes of the pushes that have ended.
  std::vector<std::int32_t> ends(unsigned at) {
    Server& server = servers_[at];
    const SessionRegion& region = server.session->region();
    std::vector<std::int32_t> codes;
    for (; server.ended < region.header().completion_tail.load(); ++server.ended) {
      codes.push_back(region.completion(server.ended).code);
    }
    return codes;
  }

  void poll(unsigned at) { servers_[at].engine->poll(now_ += 1000); }
  void hand_over(unsigned from) {
    auto& sent = servers_[from].port.sent;
    auto& arriving = servers_[1 - from].port.arriving;
    arriving.insert(arriving.end(), sent.begin(), sent.end());
    sent.clear();
  }
  // Until nothing more would move.
  void exchange() {
    for (unsigned round = 0; round < 50; ++round) {
      for (const unsigned at : {0U, 1U}) {
        poll(at);
        hand_over(at);
      }
    }
  }
  void train(unsigned rounds, std::uint32_t number = 1) {
    push(0, 8, shared::PushKind::weights, number);
    push(1, 8, shared::PushKind::weights, number);
    exchange();
    for (unsigned round = 0; round < rounds; ++round) {
      push(0, 1, shared::PushKind::gradients, number);
      push(1, 3, shared::PushKind::gradients, number);
      exchange();
    }
    EXPECT_EQ(ends(0), std::vector<std::int32_t>(rounds + 1, 0));
    EXPECT_EQ(ends(1), std::vector<std::int32_t>(rounds + 1, 0));
  }
  std::vector<float> weights(unsigned at) {
    const auto* base = reinterpret_cast<const float*>(servers_[at].session->hub()->memory().base());
    return {base, base + kKeyElements};
  }
  std::uint64_t dropped(unsigned at, DropReason reason) const {
    return servers_[at].engine->counters().dropped[static_cast<std::size_t>(reason)];
  }

  std::deque<Server> servers_;
  std::uint32_t flows_ = 0;
  Nanoseconds now_ = 1'000'000;
};

TEST_F(EngineHubs, Train) {
  attach_both();
  EXPECT_EQ(flows_, 2U);
  train(3);
  // The mean of the gradients is 2, and the rate a half.
  for (const unsigned at : {0U, 1U}) {
    EXPECT_EQ(weights(at), std::vector<float>(kKeyElements, 8 - 3));
    EXPECT_EQ(servers_[at].engine->counters().hub_rounds, 4U);
    EXPECT_TRUE(servers_[at].events.events.empty());
  }
}

TEST_F(EngineHubs, LeaveNothingWhenTheyAreDetached) {
  for (const std::uint32_t number : {1U, 2U, 3U}) {
    const std::array hubs = {attach(0, number), attach(1, number)};
    train(1, number);
    for (const unsigned at : {0U, 1U}) {
      Server& server = servers_[at];
      const std::uint32_t reserved = server.job->reserved();
      EXPECT_EQ(server.job->reserved_by_all(), reserved + 64);
      detach(at);
      EXPECT_EQ(server.job->hub(), nullptr);
      EXPECT_EQ(server.job->references(), 0U);
      server.job->reap_hubs();
      EXPECT_TRUE(hubs[at].expired());
      EXPECT_EQ(server.job->reserved_by_all(), reserved);
    }
    exchange();
  }
}

TEST_F(EngineHubs, AreDetachedWhileSegmentsAreOnTheirWay) {
  const std::array hubs = {attach(0), attach(1)};
  push(0, 1);
  poll(0);
  ASSERT_FALSE(servers_[0].port.sent.empty());
  detach(0);
  servers_[0].job->reap_hubs();
  EXPECT_FALSE(hubs[0].expired()) << "packets count among its own";
  EXPECT_GT(servers_[0].job->references(), 0U);
  EXPECT_EQ(ends(0), std::vector<std::int32_t>{GRADCUBE_EINVAL});
  exchange();
  EXPECT_EQ(servers_[0].job->references(), 0U);
  servers_[0].job->reap_hubs();
  EXPECT_TRUE(hubs[0].expired());
}

TEST_F(EngineHubs, DropAndCountWhatIsOfAHubThatIsNotThere) {
  attach(1);
  push(1, 1);
  const std::uint64_t before = dropped(0, DropReason::no_hub);
  exchange();
  EXPECT_GT(dropped(0, DropReason::no_hub), before);
  EXPECT_EQ(ends(1), std::vector<std::int32_t>{});
}

TEST_F(EngineHubs, DropAndCountWhatIsOfTheHubBefore) {
  attach(0, 2);
  attach(1, 1);
  push(1, 1);
  exchange();
  EXPECT_GT(dropped(0, DropReason::no_hub), 0U);
  EXPECT_EQ(dropped(0, DropReason::unfitting_chunk), 0U);
  EXPECT_EQ(ends(1), std::vector<std::int32_t>{});
}

TEST_F(EngineHubs, CountTheirPacketsApartFromThoseOfCollectives) {
  attach_both();
  EngineJob& job = *servers_[0].job;
  push(0, 1);
  poll(0);
  const unsigned pushed = job.hub()->payloads().references();
  EXPECT_GT(pushed, 0U);
  EXPECT_EQ(job.payloads().references(), 0U);
  EXPECT_EQ(job.references(), pushed);
  push(1, 1);
  exchange();
  EXPECT_EQ(job.references(), 0U);

  shared::Submission entry{};
  entry.request = 1;
  entry.offset = shared::kHeapOffset;
  entry.count = kKeyElements;
  Server& server = servers_[0];
  submission_entry(server.session->region(), server.submitted++) = entry;
  server.session->region().header().submission_tail.store(server.submitted);
  poll(0);
  EXPECT_GT(job.payloads().references(), 0U);
  EXPECT_EQ(job.hub()->payloads().references(), 0U);
}

TEST_F(EngineHubs, TellOfAKeyThatIsPushedDifferently) {
  attach_both();
  push(0, 8, shared::PushKind::weights);
  push(1, 8, shared::PushKind::weights);
  exchange();
  push(0, 1, shared::PushKind::gradients, 1, 0.25);
  push(1, 1, shared::PushKind::gradients, 1, 0.5);
  exchange();
  unsigned told = 0;
  for (const unsigned at : {0U, 1U}) {
    for (const EngineEvent& event : servers_[at].events.events) {
      EXPECT_EQ(event.kind, EngineEvent::Kind::hub_disagreement);
      EXPECT_EQ(event.hub_key, 0U);
      ++told;
    }
    EXPECT_LE(servers_[at].events.events.size(), 1U) << "it is told once";
    EXPECT_EQ(ends(at), std::vector<std::int32_t>{0}) << "the weights alone";
  }
  EXPECT_GE(told, 1U);
}

}  // namespace
}  // namespace gradcube::dataplane
