// What an engine does with frames that are on their way to other servers, and how it reaches
// servers that are no neighbours: server [0,0] of bcube:3,2, turned by hand.

#include <algorithm>
#include <array>
#include <cstring>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "control/plan/algorithms.h"
#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using protocol::Hop;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::uint32_t kSegmentBytes = 512;
constexpr protocol::JobId kJob = 77;

bcube::AddressSpace cube() { return control::parse_topology("bcube:3,2", "test").space(); }

// An engine of one server without a job, and its two ports.
struct Relay {
  Relay(bcube::ServerId server, const EnginePools& pools)
      : credit{protocol::PortCredit({}), protocol::PortCredit({})}, engine([&] {
          EngineSettings settings;
          settings.server = server;
          settings.threads = {0};
          settings.segment_bytes = kSegmentBytes;
          return std::make_unique<Engine>(
              settings, cube(),
              std::vector<EnginePort>{{&ports[0], &credit[0]}, {&ports[1], &credit[1]}}, pools,
              events);
        }()) {}

  std::array<FakePort, 2> ports;
  std::array<protocol::PortCredit, 2> credit;
  Events events;
  std::unique_ptr<Engine> engine;
};

class RelayTest : public testing::Test {
 protected:
  ~RelayTest() override {
    for (FakePort& port : here_.ports) sent(port);
    here_.engine.reset();
    EXPECT_EQ(packets_in_use(frames_), 0u) << "frames have leaked";
    EXPECT_EQ(packets_in_use(packets_), 0u) << "packets have leaked";
    EXPECT_EQ(packets_in_use(answers_), 0u) << "answers have leaked";
  }

  struct Sent {
    protocol::ParsedFrame frame;
    std::vector<std::uint8_t> bytes;
  };

  static protocol::RoutingHeader routing(bcube::ServerId from, bcube::ServerId to,
                                         const std::vector<Hop>& hops, unsigned index = 0) {
    protocol::RoutingHeader header;
    header.source = static_cast<std::uint16_t>(from);
    header.destination = static_cast<std::uint16_t>(to);
    header.hop_count = static_cast<std::uint8_t>(hops.size());
    header.hop_index = static_cast<std::uint8_t>(index);
    std::copy(hops.begin(), hops.end(), header.hops.begin());
    return header;
  }

  // A segment's frame, sealed.
  static std::vector<std::uint8_t> frame(const protocol::RoutingHeader& route,
                                         std::uint16_t length = kSegmentBytes) {
    protocol::TransportHeader transport;
    transport.job = 5;
    protocol::SegmentHeader segment;
    segment.length = length;
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::encode_frame(bytes, {}, route, transport, &segment));
    bytes.resize(bytes.size() + length, 0xab);
    return bytes;
  }

  void put(Relay& at, unsigned port, const std::vector<std::uint8_t>& bytes) {
    rte_mbuf* packet = frames_.allocate();
    ASSERT_NE(packet, nullptr);
    std::memcpy(rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
                bytes.size());
    at.ports[port].arriving.push_back(packet);
  }
  void poll(Relay& at) { at.engine->poll(now_ += 1000); }
  void poll() { poll(here_); }

  // What the port has sent since the last call. The packets are freed.
  static std::vector<Sent> sent(FakePort& port) {
    std::vector<Sent> all;
    for (rte_mbuf* packet : port.sent) {
      Sent& one = all.emplace_back();
      one.bytes.resize(packet->pkt_len);
      const void* bytes = rte_pktmbuf_read(packet, 0, packet->pkt_len, one.bytes.data());
      if (bytes != one.bytes.data()) std::memcpy(one.bytes.data(), bytes, packet->pkt_len);
      EXPECT_EQ(protocol::parse_frame(one.bytes, one.bytes.size(), one.frame),
                protocol::FrameError::none);
      rte_pktmbuf_free(packet);
    }
    port.sent.clear();
    return all;
  }

  std::uint64_t dropped(DropReason reason) const {
    return here_.engine->counters().dropped[static_cast<std::size_t>(reason)];
  }

  PacketPool packets_ = make_pool("relay", 2047);
  PacketPool answers_ = make_pool("answers", 255);
  PacketPool frames_ = make_pool("wire", 1023, 1024);
  Relay here_{0, {packets_, answers_}};
  Nanoseconds now_ = 1'000'000;
};

// From [0,1] through [0,0] to [2,0].
const std::vector<Hop> kThroughHere{{0, 0}, {1, 2}};

TEST_F(RelayTest, SendsAFrameOnThroughThePortOfItsNextHop) {
  const std::vector<std::uint8_t> bytes = frame(routing(1, 6, kThroughHere));
  put(here_, 0, bytes);
  poll();
  EXPECT_THAT(sent(here_.ports[0]), IsEmpty());
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), 1u);
  const protocol::RoutingHeader& route = frames[0].frame.routing;
  EXPECT_EQ(route.source, 1);
  EXPECT_EQ(route.destination, 6);
  EXPECT_EQ(route.hop_index, 1);
  const bcube::LinkAddress next = bcube::embedded_link_address(1, 6);
  EXPECT_TRUE(std::equal(next.mac.begin(), next.mac.end(), frames[0].bytes.begin()));
  // Behind the hop index nothing has changed.
  EXPECT_TRUE(std::equal(bytes.begin() + 44, bytes.end(), frames[0].bytes.begin() + 44,
                         frames[0].bytes.end()));
  EXPECT_EQ(here_.engine->counters().relayed, 1u);
}

TEST_F(RelayTest, RefusesEveryHopThatDoesNotExist) {
  unsigned relayed = 0;
  for (unsigned level = 0; level < 256; ++level) {
    for (unsigned digit = 0; digit < 256; ++digit) {
      const Hop hop{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
      put(here_, 0, frame(routing(1, 6, {{0, 0}, hop}), 0));
      poll();
      for (FakePort& port : here_.ports) relayed += static_cast<unsigned>(sent(port).size());
    }
  }
  EXPECT_EQ(relayed, 4u);  // its neighbours
  EXPECT_EQ(dropped(DropReason::no_such_hop), 65536u - 4);
}

TEST_F(RelayTest, RefusesAFrameWhoseHopsEndAtTheWrongServer) {
  put(here_, 0, frame(routing(1, 6, {{0, 0}})));
  poll();
  EXPECT_EQ(dropped(DropReason::not_for_this_server), 1u);
}

TEST_F(RelayTest, DropsWhatFindsNoRoomAndSendsTheRestInOrder) {
  here_.ports[1].room = 0;
  for (unsigned i = 0; i < RelayQueue::kCapacity + 3; ++i) {
    protocol::RoutingHeader route = routing(1, 6, kThroughHere);
    route.source = static_cast<std::uint16_t>(i + 10);
    put(here_, 0, frame(route, 0));
  }
  for (unsigned i = 0; i < 20; ++i) poll();
  EXPECT_EQ(dropped(DropReason::relay_full), 3u);
  EXPECT_TRUE(here_.engine->busy());
  EXPECT_THAT(sent(here_.ports[1]), IsEmpty());
  here_.ports[1].room = 64;
  EXPECT_LE(here_.engine->next_event(), now_);
  for (unsigned i = 0; i < 20; ++i) poll();
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), std::size_t{RelayQueue::kCapacity});
  for (unsigned i = 0; i < frames.size(); ++i) EXPECT_EQ(frames[i].frame.routing.source, i + 10);
  EXPECT_FALSE(here_.engine->busy());
}

TEST_F(RelayTest, FreesTheFramesThatWaitWhenItEnds) {
  here_.ports[1].room = 0;
  put(here_, 0, frame(routing(1, 6, kThroughHere)));
  poll();
  EXPECT_EQ(packets_in_use(frames_), 1u);
}

// The hop index is all that ends a frame's way, so whatever the list says it is at most 8 hops.
TEST_F(RelayTest, EndsEveryListOfHops) {
  const std::uint64_t seed = protocol::test_seed(20'260'101);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  const bcube::AddressSpace space = cube();
  std::map<bcube::ServerId, std::unique_ptr<Relay>> all;
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    all[server] = std::make_unique<Relay>(server, EnginePools{packets_, answers_});
  }
  unsigned longest = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::vector<Hop> hops(1 + random() % protocol::kMaxHops);
    for (Hop& hop : hops) {
      hop = {static_cast<std::uint8_t>(random() % 2), static_cast<std::uint8_t>(random() % 4)};
    }
    bcube::ServerId at = random() % space.servers();
    std::vector<std::uint8_t> bytes =
        frame(routing(1, 6, hops, static_cast<unsigned>(random() % hops.size())), 0);
    unsigned relays = 0;
    for (bool moves = true; moves;) {
      put(*all[at], 0, bytes);
      poll(*all[at]);
      moves = false;
      for (unsigned level = 0; level < 2; ++level) {
        for (const Sent& onward : sent(all[at]->ports[level])) {
          const Hop hop = onward.frame.routing.hops[onward.frame.routing.hop_index];
          ASSERT_EQ(hop.level, level);
          bytes = onward.bytes;
          at = space.with_digit(at, level, hop.digit);
          ASSERT_FALSE(moves);
          moves = true;
        }
      }
      relays += moves ? 1 : 0;
      ASSERT_LT(relays, protocol::kMaxHops);
    }
    longest = std::max(longest, relays);
  }
  EXPECT_GE(longest, 4u);
}

// With a job that runs `mesh` over all nine servers.
class DistantPeers : public RelayTest {
 protected:
  static constexpr std::uint64_t kElements = 9ULL * 64 * kSegmentBytes / sizeof(float);

  DistantPeers() : session_(1, kElements * sizeof(float) + 4096, 1, 9) {
    const auto plan = std::make_shared<control::Plan>(
        control::make_plan("mesh", control::parse_topology("bcube:3,2", "test"), "test"));
    const unsigned window = 16;
    job_ = here_.engine->prepare(kJob, *session_, LanePlans{{plan, 0}}, 1,
                                 aggregation::select_kernels(512),
                                 {window, *share_.reserve(16 * window)});
    here_.engine->attach(*job_, 0);
    here_.engine->start(kJob);
    poll();
    for (FakePort& port : here_.ports) sent(port);
  }

  // The job outlives its engine and its packets.
  ~DistantPeers() override {
    here_.engine.reset();
    for (FakePort& port : here_.ports) sent(port);
    EXPECT_EQ(job_->references(), 0u);
  }

  // The server grants so many segments in the aggregation stage.
  void grant(bcube::ServerId from, std::uint8_t segments) {
    const bcube::Route back = bcube::shortest_route(cube(), from, 0);
    std::vector<Hop> hops;
    for (const bcube::Hop& hop : back) hops.push_back({hop.level, hop.digit});
    protocol::TransportHeader transport;
    transport.job = kJob;
    transport.credit = segments;
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::encode_frame(
        bytes, {}, routing(from, 0, hops, static_cast<unsigned>(hops.size()) - 1), transport,
        nullptr));
    put(here_, hops.back().level, bytes);
    poll();
  }

  PacketShare share_{10'000};
  TestSession session_;
  std::unique_ptr<EngineJob> job_;
};

TEST_F(DistantPeers, AreAskedBeforeAnythingIsSentToThem) {
  session_.submit(kElements);
  poll();
  for (FakePort& port : here_.ports) {
    for (const Sent& each : sent(port)) {
      const bool near = bcube::are_neighbours(cube(), 0, each.frame.routing.destination);
      EXPECT_EQ(each.frame.is_segment, near);
      EXPECT_GT(each.frame.transport.backlog, 0);
    }
  }
}

TEST_F(DistantPeers, AreReachedOverTheHopsOfTheirRoute) {
  session_.submit(kElements);
  poll();
  for (FakePort& port : here_.ports) sent(port);
  grant(4, 3);  // [1,1]
  EXPECT_THAT(sent(here_.ports[1]), IsEmpty());
  const std::vector<Sent> frames = sent(here_.ports[0]);
  ASSERT_EQ(frames.size(), 3u);
  for (const Sent& each : frames) {
    EXPECT_TRUE(each.frame.is_segment);
    EXPECT_EQ(each.frame.payload_bytes, kSegmentBytes);
    const protocol::RoutingHeader& route = each.frame.routing;
    EXPECT_EQ(route.destination, 4);
    EXPECT_EQ(route.hop_count, 2);
    EXPECT_EQ(route.hop_index, 0);
    EXPECT_EQ(route.hops[0], (Hop{0, 1}));
    EXPECT_EQ(route.hops[1], (Hop{1, 1}));
  }
}

// A frame of a distant server came over the port of its last hop: there it counts for the credit.
TEST_F(DistantPeers, CountForThePortThatTheirFramesComeInThrough) {
  for (const Flow& flow : job_->executors().front().flows()) {
    if (bcube::are_neighbours(cube(), 0, flow.peer)) {
      EXPECT_EQ(flow.port_out(), flow.port_in);
      continue;
    }
    EXPECT_EQ(flow.port_out(), 0u);
    EXPECT_EQ(flow.port_in, 1u);
  }
}

TEST_F(DistantPeers, ShareThePortWithRelayedFramesByBytes) {
  session_.submit(kElements);
  poll();
  for (const bcube::ServerId near : {3U, 6U}) grant(near, 16);
  for (FakePort& port : here_.ports) sent(port);
  here_.ports[1].room = 0;
  for (const bcube::ServerId near : {3U, 6U}) grant(near, 32);
  for (unsigned i = 0; i < 40; ++i) {
    put(here_, 0, frame(routing(1, 6, kThroughHere), kSegmentBytes / 2));
  }
  poll();
  poll();
  here_.ports[1].room = 24;
  poll();
  std::uint64_t relayed = 0;
  std::uint64_t own = 0;
  for (const Sent& each : sent(here_.ports[1])) {
    if (!each.frame.is_segment) continue;
    (each.frame.routing.source == 1 ? relayed : own) += each.bytes.size();
  }
  EXPECT_GT(own, 0u);
  EXPECT_NEAR(static_cast<double>(relayed), static_cast<double>(own), 1000.0);
}

}  // namespace
}  // namespace gradcube::dataplane
