// Engines of one server whose ports bring frames to any of their queues.
#include "dataplane/engine/hand_over.h"

#include <algorithm>
#include <array>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/engine/engine.h"
#include "dataplane/fabric/frame_fields.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {
namespace {

constexpr protocol::JobId kSharedJob = 7;
constexpr unsigned kEngines = 2;
constexpr unsigned kServers = 4;

// One end of a cable of bcube:2,2: frames that the other end sends come to a queue that the test
// chooses.
class SprayingPort final : public Port {
 public:
  using Choose = std::function<unsigned(const rte_mbuf*)>;

  SprayingPort() : Port(kEngines, 9000) {}
  ~SprayingPort() override {
    for (auto& queue : arriving_) {
      for (rte_mbuf* packet : queue) rte_pktmbuf_free(packet);
    }
  }
  void arrive(unsigned queue, rte_mbuf* packet) { arriving_[queue].push_back(packet); }
  void connect(SprayingPort& other, Choose choose) {
    other_ = &other;
    choose_ = std::move(choose);
  }

  std::uint16_t receive(std::uint16_t queue, rte_mbuf** packets, std::uint16_t count) override {
    std::uint16_t received = 0;
    for (auto& arriving = arriving_[queue]; received < count && !arriving.empty(); ++received) {
      packets[received] = arriving.front();
      arriving.pop_front();
    }
    return received;
  }
  std::uint16_t transmit(std::uint16_t, rte_mbuf** packets, std::uint16_t count) override {
    for (unsigned i = 0; i < count; ++i) {
      other_->arriving_[choose_(packets[i])].push_back(packets[i]);
    }
    return count;
  }
  std::uint16_t transmit_room(std::uint16_t) const override { return 64; }

 private:
  SprayingPort* other_ = nullptr;
  Choose choose_;
  std::array<std::deque<rte_mbuf*>, kEngines> arriving_;
};

// A server of bcube:2,2, with an engine for each of its two threads, and a job.
struct TwoEngines {
  TwoEngines(bcube::ServerId server, const EnginePools& pools, std::uint32_t depth,
             std::uint64_t elements, Nanoseconds greeting_interval)
      : hand_over({&bells[0], &bells[1]}, depth),
        session(2, elements * sizeof(float) + 4096, 1, kServers) {
    const bcube::AddressSpace space = control::parse_topology("bcube:2,2", "test").space();
    for (unsigned queue = 0; queue < kEngines; ++queue) {
      EngineSettings settings;
      settings.server = server;
      settings.queue = static_cast<std::uint16_t>(queue);
      settings.threads = {queue};
      settings.engines = kEngines;
      settings.segment_bytes = 512;
      settings.links = &links;
      if (queue == 0) settings.greetings.interval = greeting_interval;
      settings.hand_over = &hand_over;
      engines.push_back(std::make_unique<Engine>(
          settings, space,
          std::vector<EnginePort>{{&ports[0], &credit[0]}, {&ports[1], &credit[1]}}, pools,
          events));
    }
  }

  void attach(PacketShare& share) {
    const unsigned window = EngineSettings{}.window;
    for (auto& engine : engines) {
      jobs.push_back(engine->prepare(kSharedJob, *session, bml_lanes("bcube:2,2"), 1,
                                     aggregation::select_kernels(512),
                                     {window, *share.reserve(4 * window)}));
      engine->attach(*jobs.back(), 0);
      engine->start(kSharedJob);
    }
  }

  std::array<Doorbell, kEngines> bells;
  std::array<SprayingPort, 2> ports;
  std::array<protocol::PortCredit, 2> credit{protocol::PortCredit({}), protocol::PortCredit({})};
  ServerLinks links{control::parse_topology("bcube:2,2", "test").space()};
  Events events;
  HandOver hand_over;
  TestSession session;
  std::vector<std::unique_ptr<EngineJob>> jobs;
  std::vector<std::unique_ptr<Engine>> engines;
};

class HandOverTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kElements = 40'000;

  ~HandOverTest() override {
    for (auto& server : servers_) server->engines.clear();
    servers_.clear();
    EXPECT_EQ(packets_in_use(packets_), 0u) << "packets have leaked";
    EXPECT_EQ(packets_in_use(answers_), 0u) << "answers have leaked";
  }

  void make(const SprayingPort::Choose& choose, std::uint32_t depth = HandOver::kDepth,
            Nanoseconds greeting_interval = 0) {
    for (bcube::ServerId server = 0; server < kServers; ++server) {
      servers_.push_back(std::make_unique<TwoEngines>(server, EnginePools{packets_, answers_},
                                                      depth, kElements, greeting_interval));
    }
    for (bcube::ServerId server = 0; server < kServers; ++server) {
      for (unsigned level = 0; level < 2; ++level) {
        servers_[server]->ports[level].connect(servers_[server ^ (1U << level)]->ports[level],
                                               choose);
      }
      servers_[server]->attach(share_);
    }
  }

  // Turns all engines until the all-reduce of what is submitted has ended; asserts what it gives.
  void all_reduce() {
    for (bcube::ServerId server = 0; server < kServers; ++server) {
      for (std::uint64_t i = 0; i < kElements; ++i) {
        servers_[server]->session.buffer()[i] = static_cast<float>(server * 100 + i % 1000);
      }
      servers_[server]->session.submit(kElements);
    }
    const auto ended = [this] {
      return std::all_of(servers_.begin(), servers_.end(),
                         [](const auto& server) { return server->session->completions() == 1; });
    };
    for (unsigned i = 0; i < 1'000'000 && !ended(); ++i) poll();
    ASSERT_TRUE(ended());
    for (const auto& server : servers_) {
      for (std::uint64_t i = 0; i < kElements; ++i) {
        ASSERT_EQ(server->session.buffer()[i], static_cast<float>(600 + 4 * (i % 1000))) << i;
      }
    }
  }
  void poll() {
    now_ += 10'000;
    for (auto& server : servers_) {
      for (auto& engine : server->engines) engine->poll(now_);
    }
  }

  // A frame of server 1's for server 0 that came to its queue 0 and asks for this queue.
  void put(unsigned thread, std::uint16_t queue_asked_for) {
    protocol::RoutingHeader routing;
    routing.source = 1;
    routing.destination = 0;
    routing.hops[0] = {0, 0};
    protocol::TransportHeader transport;
    transport.job = kSharedJob;
    transport.thread = static_cast<std::uint8_t>(thread);
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::encode_frame(bytes, {}, routing, transport, nullptr));
    constexpr std::size_t kSourcePortAt = kEthernetBytes + kIpv4Bytes;
    const std::uint16_t port = protocol::kFirstSourcePort + queue_asked_for;
    bytes[kSourcePortAt] = static_cast<std::uint8_t>(port >> 8);
    bytes[kSourcePortAt + 1] = static_cast<std::uint8_t>(port & 0xff);
    rte_mbuf* packet = packets_.allocate();
    ASSERT_NE(packet, nullptr);
    std::copy(bytes.begin(), bytes.end(),
              rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size())));
    servers_[0]->ports[0].arrive(0, packet);
  }

  std::uint64_t handed_over() const {
    std::uint64_t sum = 0;
    for_each_engine([&](const Engine& engine) { sum += engine.counters().handed_over; });
    return sum;
  }
  std::uint64_t dropped(DropReason reason) const {
    std::uint64_t sum = 0;
    for_each_engine([&](const Engine& engine) {
      sum += engine.counters().dropped[static_cast<std::size_t>(reason)];
    });
    return sum;
  }
  template <typename Function>
  void for_each_engine(const Function& function) const {
    for (const auto& server : servers_) {
      for (const auto& engine : server->engines) function(*engine);
    }
  }

  PacketPool packets_ = make_pool("handed", 8191);
  PacketPool answers_ = make_pool("answers", 2047);
  PacketShare share_{100'000};
  std::vector<std::unique_ptr<TwoEngines>> servers_;
  Nanoseconds now_ = 1'000'000;
};

unsigned right_queue(const rte_mbuf* packet) { return thread_of(packet) % kEngines; }

TEST_F(HandOverTest, AllReducesWhereFramesComeToAnyQueue) {
  const unsigned seed = testing::UnitTest::GetInstance()->random_seed();
  SCOPED_TRACE("--gtest_random_seed=" + std::to_string(seed));
  std::mt19937 random(seed);
  std::uint64_t astray = 0;
  make([&](const rte_mbuf* packet) {
    const unsigned queue = random() % kEngines;
    astray += queue != right_queue(packet) ? 1 : 0;
    return queue;
  });
  all_reduce();
  poll();
  EXPECT_GT(astray, 0u);
  EXPECT_EQ(handed_over(), astray);
  EXPECT_EQ(dropped(DropReason::foreign_thread), 0u);
  EXPECT_EQ(dropped(DropReason::hand_over_full), 0u);
}

TEST_F(HandOverTest, AllReducesWhereAllFramesComeToOneQueue) {
  make([](const rte_mbuf*) { return 0U; });
  all_reduce();
  for (const auto& server : servers_) {
    EXPECT_GT(server->engines[0]->counters().handed_over, 0u);
    EXPECT_EQ(server->engines[1]->counters().handed_over, 0u);
    EXPECT_GT(server->engines[1]->counters().segments_received, 0u);
  }
}

TEST_F(HandOverTest, HandsNothingOverWhereFramesComeToTheRightQueue) {
  make(right_queue);
  all_reduce();
  EXPECT_EQ(handed_over(), 0u);
}

TEST_F(HandOverTest, DropsWhatARingHasNoRoomForAndRecovers) {
  make([](const rte_mbuf*) { return 0U; }, 1);
  all_reduce();
  EXPECT_GT(dropped(DropReason::hand_over_full), 0u);
  std::uint64_t resent = 0;
  for_each_engine([&](const Engine& engine) { resent += engine.counters().resent; });
  EXPECT_GT(resent, 0u);
}

TEST_F(HandOverTest, DropsAForgedThreadAtTheEngineWhoseQueueItAsksFor) {
  make(right_queue);
  const auto foreign = [this](unsigned engine) {
    return servers_[0]->engines[engine]->counters().dropped[static_cast<std::size_t>(
        DropReason::foreign_thread)];
  };
  put(0, 1);
  put(50, 1);
  put(1, 0);
  for (unsigned i = 0; i < 3; ++i) poll();
  EXPECT_EQ(foreign(0), 1u);
  EXPECT_EQ(foreign(1), 2u);
  EXPECT_EQ(handed_over(), 2u) << "it goes nowhere else";
  all_reduce();
}

TEST_F(HandOverTest, KeepsLinksUpWhereGreetingsComeToTheWrongQueue) {
  make([](const rte_mbuf*) { return 1U; }, HandOver::kDepth, protocol::kMillisecond);
  for (unsigned i = 0; i < 2'000; ++i) poll();
  for (std::uint8_t level = 0; level < 2; ++level) {
    EXPECT_TRUE(servers_[0]->links.up(bcube::Hop{level, 1}));
    EXPECT_TRUE(servers_[0]->links.heard(bcube::Hop{level, 1}));
  }
  EXPECT_EQ(dropped(DropReason::wrong_link), 0u);
  EXPECT_GT(handed_over(), 0u);
}

TEST_F(HandOverTest, FreesWhatIsOnItsWayWhenTheServerEnds) {
  make(right_queue);
  put(1, 1);
  put(1, 1);
  servers_[0]->engines[0]->poll(now_ += 1000);
  EXPECT_EQ(servers_[0]->engines[0]->counters().handed_over, 2u);
}

}  // namespace
}  // namespace gradcube::dataplane
