// Engines of bcube:3,2 that are turned by hand, for tests of what they do with frames of other
// servers, with servers that are no neighbours, and with links that are down.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_RELAY_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_RELAY_FIXTURE_H_

#include <algorithm>
#include <array>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <vector>

#include "control/plan/algorithms.h"
#include "dataplane/engine/engine.h"
#include "tests/unit/dataplane/engine/engine_fixture.h"

namespace gradcube::dataplane {

inline constexpr std::uint32_t kSegmentBytes = 512;
inline constexpr protocol::JobId kRelayJob = 77;

inline bcube::AddressSpace cube() { return control::parse_topology("bcube:3,2", "test").space(); }

// How an engine greets.
struct Manners {
  Nanoseconds interval = 0;
  protocol::SettingsDigest digest{};
  bool announces = false;
  std::vector<std::uint64_t> bits_per_second{};
  std::uint32_t padded_bytes = 0;
};

// An engine of one server without a job, and its two ports.
struct Relay {
  Relay(bcube::ServerId server, const EnginePools& pools, const Manners& manners = {})
      : credit{protocol::PortCredit({}), protocol::PortCredit({})}, engine([&] {
          EngineSettings settings;
          settings.server = server;
          settings.threads = {0};
          settings.segment_bytes = kSegmentBytes;
          settings.links = &links;
          settings.greetings = {manners.interval, manners.digest, manners.announces};
          settings.greetings.padded_bytes = manners.padded_bytes;
          settings.bits_per_second = manners.bits_per_second;
          settings.inbox = &inbox;
          return std::make_unique<Engine>(
              settings, cube(),
              std::vector<EnginePort>{{&ports[0], &credit[0]}, {&ports[1], &credit[1]}}, pools,
              events);
        }()) {}

  std::array<FakePort, 2> ports;
  std::array<protocol::PortCredit, 2> credit;
  Events events;
  ServerLinks links{cube()};
  MessageInbox inbox;
  std::unique_ptr<Engine> engine;
};

class RelayTest : public testing::Test {
 protected:
  explicit RelayTest(const Manners& manners = {}) : here_{0, {packets_, answers_}, manners} {}
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
                                         const std::vector<protocol::Hop>& hops,
                                         unsigned index = 0) {
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
  Relay here_;
  Nanoseconds now_ = 1'000'000;
};

// From [0,1] through [0,0] to [2,0].
inline const std::vector<protocol::Hop> kThroughHere{{0, 0}, {1, 2}};

// With a job that runs `mesh` over all nine servers.
class DistantPeers : public RelayTest {
 protected:
  static constexpr std::uint64_t kElements = 9ULL * 64 * kSegmentBytes / sizeof(float);

  explicit DistantPeers(const Manners& manners = {})
      : RelayTest(manners), session_(1, kElements * sizeof(float) + 4096, 1, 9) {
    const auto plan = std::make_shared<control::Plan>(
        control::make_plan("mesh", control::parse_topology("bcube:3,2", "test"), "test"));
    const unsigned window = 16;
    job_ = here_.engine->prepare(kRelayJob, *session_, LanePlans{{plan, 0}}, 1,
                                 aggregation::select_kernels(512),
                                 {window, *share_.reserve(16 * window)});
    here_.engine->attach(*job_, 0);
    here_.engine->start(kRelayJob);
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
    std::vector<protocol::Hop> hops;
    for (const bcube::Hop& hop : back) hops.push_back({hop.level, hop.digit});
    protocol::TransportHeader transport;
    transport.job = kRelayJob;
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

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_ENGINE_RELAY_FIXTURE_H_
