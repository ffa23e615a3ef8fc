// The fabric of a BCube, and of some of its servers, driven by pollers on a virtual clock.
#include "dataplane/fabric/emulated/embedded_fabric.h"

#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <iterator>
#include <memory>
#include <numeric>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/poller.h"
#include "tests/unit/dataplane/fabric/frame_fixture.h"

namespace gradcube::dataplane {
namespace {

using bcube::ServerId;
using Numbers = std::vector<std::uint32_t>;

// Two levels, level 0 first: servers [0,0] to [3,2], which are 0 to 11.
const bcube::AddressSpace kSpace(std::vector<unsigned>{3, 4});

std::vector<ServerId> all_servers(const bcube::AddressSpace& space) {
  std::vector<ServerId> servers(space.servers());
  std::iota(servers.begin(), servers.end(), ServerId{0});
  return servers;
}

EmbeddedFabricOptions fabric_of(std::vector<ServerId> servers) {
  return {.space = kSpace, .servers = std::move(servers), .clones = clone_pool(1500)};
}

class EmbeddedFabricTest : public FrameTest {
 protected:
  void TearDown() override {
    pollers_.clear();
    fabric_.reset();
    check_frames();
  }

  // The engines of server s and queue q lie on poller (s + q) mod pollers.
  void build(const EmbeddedFabricOptions& options, std::size_t pollers = 1) {
    pollers_.clear();
    fabric_ = std::make_unique<EmbeddedFabric>(options);
    std::vector<Poller*> shared;
    for (std::size_t i = 0; i < pollers; ++i) {
      pollers_.push_back(std::make_unique<Poller>(clock_, control::Idle::spin));
      shared.push_back(pollers_.back().get());
    }
    fabric_->connect(
        [this](ServerId server, std::uint16_t queue) -> Poller& {
          return *pollers_[(server + queue) % pollers_.size()];
        },
        shared);
  }

  static std::uint64_t address(unsigned level, ServerId server) {
    return std::uint64_t{level} << 24 | server;
  }

  // Over the sender's port of this level, to the address that `to` has there.
  bool send(ServerId from, unsigned level, ServerId to, std::uint32_t number,
            std::uint16_t thread = 0) {
    return FrameTest::send(fabric_->port(from, level),
                           {.to = address(level, to), .thread = thread, .number = number});
  }

  Numbers numbers_at(ServerId server, unsigned level, std::uint16_t queue = 0) {
    return received_numbers(fabric_->port(server, level), queue);
  }

  // Everything that lies at any port, which is then gone.
  std::size_t frames_anywhere() {
    std::size_t frames = 0;
    for (const ServerId server : fabric_->servers()) {
      for (unsigned level = 0; level < kSpace.levels(); ++level) {
        frames += numbers_at(server, level).size();
      }
    }
    return frames;
  }

  // Until nothing moves for a while of virtual time.
  void run() {
    for (int idle = 0; idle < 100; ++idle) {
      for (const auto& poller : pollers_) {
        if (poller->iterate() != 0) idle = 0;
      }
      clock_.advance(10'000);
    }
  }

  SwitchPortCounts switch_counts() const {
    SwitchPortCounts sum;
    for (const EmbeddedFabric::SwitchAt& at : fabric_->switches()) {
      for (std::uint16_t port = 0; port < at.fabric->ports(); ++port) {
        add_counters(sum, at.fabric->counts(port));
      }
    }
    return sum;
  }

  std::vector<EmbeddedFabric::LinkAt> links_of(ServerId server, unsigned level) const {
    std::vector<EmbeddedFabric::LinkAt> links;
    std::copy_if(fabric_->links().begin(), fabric_->links().end(), std::back_inserter(links),
                 [&](const auto& link) { return link.server == server && link.level == level; });
    return links;
  }

  // Sends from every port to every other server of the BCube and finds what arrives where.
  void expect_each_port_to_reach_its_neighbours() {
    for (const ServerId from : fabric_->servers()) {
      for (unsigned level = 0; level < kSpace.levels(); ++level) {
        for (ServerId to = 0; to < kSpace.servers(); ++to) {
          if (to == from) continue;
          SCOPED_TRACE(kSpace.text(from) + " to " + kSpace.text(to) + " at level " +
                       std::to_string(level));
          const std::uint64_t unknown = switch_counts().unknown_mac;
          ASSERT_TRUE(send(from, level, to, to));
          run();
          const bool here =
              std::binary_search(fabric_->servers().begin(), fabric_->servers().end(), to);
          const bool reached = here && bcube::are_neighbours(kSpace, from, to) &&
                               kSpace.digit(from, level) != kSpace.digit(to, level);
          const Numbers expected = reached ? Numbers{to} : Numbers{};
          if (here) {
            EXPECT_EQ(numbers_at(to, level), expected);
          }
          EXPECT_EQ(frames_anywhere(), 0u);
          EXPECT_EQ(switch_counts().unknown_mac - unknown, reached ? 0u : 1u);
        }
      }
    }
  }

  VirtualClock clock_{1'000'000};
  std::vector<std::unique_ptr<Poller>> pollers_;
  std::unique_ptr<EmbeddedFabric> fabric_;
};

TEST_F(EmbeddedFabricTest, EachPortReachesExactlyItsServersOneHopNeighbours) {
  build(fabric_of(all_servers(kSpace)));
  EXPECT_EQ(fabric_->switches().size(), 4u + 3u);
  EXPECT_EQ(fabric_->links().size(), 24u);
  expect_each_port_to_reach_its_neighbours();
}

TEST_F(EmbeddedFabricTest, OverLimitedLinksEachPortReachesTheSameServers) {
  EmbeddedFabricOptions options = fabric_of(all_servers(kSpace));
  options.link = {.bits_per_second = 1'000'000'000, .delay = 2'000, .queue_bytes = 100'000};
  build(options, 3);
  expect_each_port_to_reach_its_neighbours();
}

TEST_F(EmbeddedFabricTest, AServersPortsAreListedByLevelAndAreAsTheOptionsSay) {
  EmbeddedFabricOptions options = fabric_of({2, 7});
  options.port = {.queues = 3, .mtu = 1400, .uplink_depth = 7};
  build(options);
  for (const ServerId server : {2U, 7U}) {
    const std::vector<Port*> ports = fabric_->ports(server);
    ASSERT_EQ(ports.size(), 2u);
    for (unsigned level = 0; level < 2; ++level) {
      EXPECT_EQ(ports[level], &fabric_->port(server, level));
      EXPECT_EQ(ports[level]->queues(), 3u);
      EXPECT_EQ(ports[level]->mtu(), 1400u);
      EXPECT_EQ(ports[level]->transmit_room(0), 7u);
    }
  }
}

TEST_F(EmbeddedFabricTest, SomeOfTheServersReachOneAnotherAndNobodyElse) {
  // [0,0], [0,2] and [2,2]: the first and the last are no neighbours.
  build(fabric_of({0, 2, 8}));
  std::vector<std::string> names;
  for (const auto& at : fabric_->switches()) names.push_back(at.name);
  EXPECT_EQ(names, (std::vector<std::string>{"0/[0,*]", "0/[2,*]", "1/[*,0]", "1/[*,2]"}));
  EXPECT_EQ(fabric_->switches()[0].fabric->ports(), 2u);
  EXPECT_EQ(fabric_->switches()[1].fabric->ports(), 1u);
  expect_each_port_to_reach_its_neighbours();
}

TEST_F(EmbeddedFabricTest, AServerAloneSendsItsFramesToNobody) {
  for (const std::uint64_t rate : {0U, 1'000'000'000U}) {
    SCOPED_TRACE(rate);
    EmbeddedFabricOptions options = fabric_of({5});
    options.port.uplink_depth = 8;
    options.link.bits_per_second = rate;
    fabric_.reset();
    build(options);
    expect_each_port_to_reach_its_neighbours();
    // Many more than fit into a ring: the switch takes them all.
    const std::uint64_t before = switch_counts().unknown_mac;
    for (std::uint32_t i = 0; i < 100; ++i) {
      ASSERT_TRUE(send(5, 1, 2, i));
      if (i % 8 == 7) run();
    }
    run();
    EXPECT_EQ(switch_counts().unknown_mac - before, 100u);
    EXPECT_EQ(switch_counts().forwarded, 0u);
    EXPECT_EQ(fabric_->port(5, 1).counts().received_packets, 0u);
    check_frames();
  }
}

TEST_F(EmbeddedFabricTest, ImpairmentsOfOneLinkConcernWhatItsServerSendsThere) {
  build(fabric_of(all_servers(kSpace)));
  const auto link = links_of(4, 1);
  ASSERT_EQ(link.size(), 1u);
  fabric_->change_impairments(link, [](Impairments impairments) {
    impairments.loss = 1;
    return impairments;
  });
  EXPECT_EQ(fabric_->impairments(link.front()).loss, 1);
  EXPECT_EQ(fabric_->impairments(), Impairments{});
  for (std::uint32_t i = 0; i < 20; ++i) {
    ASSERT_TRUE(send(4, 1, 7, i) && send(4, 0, 3, i) && send(7, 1, 4, i) && send(7, 1, 1, i));
  }
  run();
  EXPECT_TRUE(numbers_at(7, 1).empty());
  EXPECT_EQ(numbers_at(3, 0).size(), 20u);
  EXPECT_EQ(numbers_at(4, 1).size(), 20u);
  EXPECT_EQ(numbers_at(1, 1).size(), 20u);
  EXPECT_EQ(switch_counts().dropped_loss, 20u);
}

TEST_F(EmbeddedFabricTest, ImpairmentsFindTheirLinkWhereServersAreMissing) {
  // [1,1] and [2,1]: the digit 0 has no port at their switch.
  build(fabric_of({4, 7}));
  fabric_->change_impairments(links_of(4, 1), [](Impairments) { return Impairments{.loss = 1}; });
  ASSERT_TRUE(send(4, 1, 7, 0) && send(7, 1, 4, 1));
  run();
  EXPECT_TRUE(numbers_at(7, 1).empty());
  EXPECT_EQ(numbers_at(4, 1), Numbers{1});
}

TEST_F(EmbeddedFabricTest, ImpairmentsOfAllLinksReplaceThoseOfOne) {
  build(fabric_of(all_servers(kSpace)));
  fabric_->change_impairments(links_of(4, 1), [](Impairments) { return Impairments{.loss = 1}; });
  const Impairments all{.loss = 0.25, .reorder = 0.5};
  fabric_->set_impairments(all);
  EXPECT_EQ(fabric_->impairments(), all);
  for (const auto& link : fabric_->links()) EXPECT_EQ(fabric_->impairments(link), all);
}

TEST_F(EmbeddedFabricTest, TheOwnerPreparesForCorruptionBeforeTheFirstFrameIsDamaged) {
  build(fabric_of(all_servers(kSpace)));
  const auto link = links_of(4, 1);
  const auto corrupt = [](Impairments impairments) {
    impairments.corrupt = 1;
    return impairments;
  };
  // What arrives of a frame, and what would arrive of it unharmed.
  const auto exchange = [&] {
    rte_mbuf* model = frame({.to = address(1, 7)});
    const std::string sent = bytes_of(model);
    rte_pktmbuf_free(model);
    EXPECT_TRUE(send(4, 1, 7, 0));
    run();
    std::string arrived;
    for (rte_mbuf* packet : received(fabric_->port(7, 1))) {
      arrived += bytes_of(packet);
      rte_pktmbuf_free(packet);
    }
    return std::pair(arrived, sent);
  };
  unsigned prepared = 0;
  fabric_->on_corruption([&] {
    ++prepared;
    EXPECT_EQ(fabric_->impairments(link.front()).corrupt, 0);
    const auto [arrived, sent] = exchange();
    EXPECT_EQ(arrived, sent) << "a frame was damaged too early";
  });
  fabric_->set_impairments({.duplicate = 0.1});
  fabric_->set_impairments({});
  EXPECT_EQ(prepared, 0u);
  fabric_->change_impairments(link, corrupt);
  EXPECT_EQ(prepared, 1u);
  const auto [arrived, sent] = exchange();
  EXPECT_EQ(arrived.size(), sent.size());
  EXPECT_NE(arrived, sent);
  fabric_->set_impairments({});
  fabric_->set_impairments({.corrupt = 0.5});
  EXPECT_EQ(prepared, 1u);
}

TEST_F(EmbeddedFabricTest, NoFrameIsDamagedWhenItsOwnerCannotPrepare) {
  build(fabric_of(all_servers(kSpace)));
  unsigned attempts = 0;
  fabric_->on_corruption([&] {
    if (++attempts == 1) throw std::runtime_error("a poller has ended");
  });
  EXPECT_THROW(fabric_->set_impairments({.corrupt = 1}), std::runtime_error);
  EXPECT_EQ(fabric_->impairments(), Impairments{});
  for (const auto& link : fabric_->links()) EXPECT_EQ(fabric_->impairments(link), Impairments{});
  fabric_->set_impairments({.corrupt = 1});
  EXPECT_EQ(attempts, 2u);
  EXPECT_EQ(fabric_->impairments().corrupt, 1);
}

TEST_F(EmbeddedFabricTest, AnUnlimitedSwitchHasAShardPerQueueOnItsFirstServersPollers) {
  EmbeddedFabricOptions options = fabric_of(all_servers(kSpace));
  options.port.queues = 2;
  build(options, 2);
  // Switch 0/[1,*] joins the servers 3 to 5: its shard of queue 0 lies on poller 1.
  ASSERT_TRUE(send(4, 0, 5, 10, 0) && send(4, 0, 5, 11, 1));
  pollers_[1]->iterate();
  EXPECT_EQ(numbers_at(5, 0, 0), Numbers{10});
  EXPECT_TRUE(numbers_at(5, 0, 1).empty());
  pollers_[0]->iterate();
  EXPECT_EQ(numbers_at(5, 0, 1), Numbers{11});
}

TEST_F(EmbeddedFabricTest, LimitedSwitchesLieOnTheSharedPollersInTurn) {
  EmbeddedFabricOptions options = fabric_of(all_servers(kSpace));
  options.link.bits_per_second = 100'000'000'000;
  build(options, 3);
  for (std::size_t i = 0; i < fabric_->switches().size(); ++i) {
    const auto link =
        std::find_if(fabric_->links().begin(), fabric_->links().end(),
                     [i](const EmbeddedFabric::LinkAt& at) { return at.switch_index == i; });
    RingPort& port = fabric_->port(link->server, link->level);
    ASSERT_TRUE(send(link->server, link->level, std::next(link)->server, 0));
    for (std::size_t p = 1; p < 3; ++p) pollers_[(i + 1 + p) % 3]->iterate();
    EXPECT_FALSE(port.nothing_sent(0)) << "switch " << i;
    pollers_[(i + 1) % 3]->iterate();
    EXPECT_TRUE(port.nothing_sent(0)) << "switch " << i;
    run();
    EXPECT_EQ(frames_anywhere(), 1u);
  }
}

TEST_F(EmbeddedFabricTest, OnlyARingBetweenTwoPollersHasDoorbells) {
  build(fabric_of(all_servers(kSpace)), 2);
  for (const auto& poller : pollers_) poller->doorbell().prepare_wait();
  const auto rung = [this](std::size_t poller) {
    const bool was = pollers_[poller]->doorbell().finish_wait();
    pollers_[poller]->doorbell().prepare_wait();
    return was;
  };
  // With one queue a switch is one shard. 1/[*,1] is switch 5, on poller 0 like server 4's engine.
  ASSERT_TRUE(send(4, 1, 10, 0));
  EXPECT_FALSE(rung(0) || rung(1));
  // Server 1's engine is on poller 1.
  ASSERT_TRUE(send(1, 1, 7, 0));
  EXPECT_TRUE(rung(0));
  EXPECT_FALSE(rung(1));
  const auto& at = fabric_->switches()[5];
  ASSERT_EQ(at.name, "1/[*,1]");
  at.fabric->shard(0).poll(clock_.now());
  EXPECT_FALSE(rung(0));
  EXPECT_TRUE(rung(1)) << "server 7 waits for its frame";
  for (const auto& poller : pollers_) poller->doorbell().finish_wait();
  run();
  EXPECT_EQ(frames_anywhere(), 2u);
}

TEST_F(EmbeddedFabricTest, DiscardingFreesWhatIsUnderWay) {
  EmbeddedFabricOptions options = fabric_of(all_servers(kSpace));
  options.link = {.bits_per_second = 1'000'000, .delay = 1'000'000};
  build(options);
  for (std::uint32_t i = 0; i < 10; ++i) ASSERT_TRUE(send(0, 0, 1, i) && send(1, 0, 0, i));
  for (int i = 0; i < 100; ++i) {
    pollers_.front()->iterate();
    clock_.advance(100'000);
  }
  EXPECT_GT(packets_in_use(frames_), 0u);
  pollers_.clear();
  fabric_->discard_packets();
  check_frames();
}

TEST_F(EmbeddedFabricTest, HasNoPortsForOtherServers) {
  build(fabric_of({0, 2}));
  EXPECT_THROW(fabric_->ports(1), std::invalid_argument);
  EXPECT_THROW(fabric_->port(12, 0), std::invalid_argument);
}

TEST(SwitchSeed, IsDifferentForEachSwitchOfEachSeed) {
  std::set<std::uint64_t> seeds;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    for (std::size_t number = 0; number < 1000; ++number) seeds.insert(switch_seed(seed, number));
  }
  EXPECT_EQ(seeds.size(), 20'000u);
}

}  // namespace
}  // namespace gradcube::dataplane
