// The ports of all servers of small clusters on sockets of the loopback interface, and a poller
// that sleeps until something comes.
#include "dataplane/fabric/udp/udp_fabric.h"

#include <algorithm>
#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "dataplane/host/poller.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/fabric/receiver.h"
#include "tests/unit/dataplane/fabric/udp_port_fixture.h"

namespace gradcube::dataplane {
namespace {

class UdpFabricTest : public UdpPortTest {
 protected:
  // Of a cluster whose servers have the addresses of this process, one for all ports.
  control::ClusterSettings settings_of(const char* topology) const {
    control::ClusterSettings settings;
    settings.fabric = control::FabricKind::udp;
    settings.topology = control::parse_topology(topology, "test");
    for (unsigned server = 0; server < settings.topology.servers(); ++server) {
      settings.hosts.push_back({address(server)});
    }
    kUdpDriver.adapt(settings);
    return settings;
  }
  std::unique_ptr<ServerFabric> fabric(const control::ClusterSettings& settings,
                                       bcube::ServerId server) {
    const PortsRequest request{
        .settings = settings, .server = server, .names = {}, .received = {&buffers()}};
    return kUdpDriver.make(request, clock_);
  }
  static UdpPort& port_of(ServerFabric& fabric, bcube::ServerId server, unsigned number) {
    return dynamic_cast<UdpPort&>(*fabric.ports(server)[number]);
  }
  // Over a link.
  std::string between(const bcube::Neighbour& link, std::uint32_t number) {
    macs_ = {link.own.mac, link.address.mac};
    return frame(500, number);
  }
};

TEST_F(UdpFabricTest, JoinsEachPortToItsNeighbours) {
  for (const char* topology : {"star:4", "bcube:2,2", "torus:3,1"}) {
    SCOPED_TRACE(topology);
    const control::ClusterSettings settings = settings_of(topology);
    const bcube::AddressSpace& space = settings.topology.space();
    std::map<bcube::ServerId, std::unique_ptr<ServerFabric>> fabrics;
    for (const bcube::ServerId server : space.server_list()) {
      fabrics[server] = fabric(settings, server);
      EXPECT_EQ(fabrics[server]->ports(server).size(), settings.topology.ports());
    }
    std::uint32_t number = 0;
    for (const bcube::ServerId server : space.server_list()) {
      const bcube::NeighbourTable neighbours(space, server);
      for (unsigned port = 0; port < space.ports(); ++port) {
        for (const bcube::Neighbour& link : neighbours.behind(port)) {
          const std::string whole = between(link, ++number);
          ASSERT_TRUE(send(port_of(*fabrics[server], server, port), Frames{whole}));
          const unsigned far =
              space.port_of(link.server, link.level, space.digit(server, link.level));
          const Frames arrived = awaited(port_of(*fabrics[link.server], link.server, far), 1);
          ASSERT_EQ(arrived.size(), 1u);
          EXPECT_EQ(arrived[0].substr(0, kEthernetBytes), whole.substr(0, kEthernetBytes));
          EXPECT_EQ(arrived[0].substr(kSourcePortAt), whole.substr(kSourcePortAt));
        }
      }
    }
  }
}

TEST_F(UdpFabricTest, MakesFramesOfSomeDatagramsWhereThereIsNoRate) {
  const auto longest = [](const char* hosts, unsigned mtu, bool has_rate) {
    control::ClusterSettings settings;
    settings.topology = control::parse_topology("star:2", "test");
    settings.hosts = control::parse_hosts(hosts, "test");
    settings.mtu = mtu;
    if (has_rate) settings.rates = control::LinkRates(1'000'000'000);
    kUdpDriver.adapt(settings);
    EXPECT_EQ(settings.mtu, mtu) << "of datagrams";
    return settings.mtu_of_frames();
  };
  constexpr const char* kV4 = "10.0.0.1 10.0.0.2";
  constexpr const char* kV6 = "fd00::1 fd00::2";
  EXPECT_EQ(longest(kV4, 9000, false), 9000u - 8);
  EXPECT_EQ(longest(kV6, 9000, false), 9000u - 28);
  EXPECT_EQ(longest(kV4, 1500, false), 28u + 6 * (1500 - 36));
  EXPECT_EQ(longest(kV6, 1500, false), 28u + 6 * (1500 - 56));
  EXPECT_EQ(longest(kV6, 1280, false), 28u + 7 * (1280 - 56));
  EXPECT_EQ(longest(kV4, 1500, true), 1500u - 8);
  EXPECT_THROW(longest("", 1500, false), control::UsageError);
}

TEST_F(UdpFabricTest, NamesThePortAndTheServerThatHaveNoAddressHere) {
  control::ClusterSettings settings = settings_of("bcube:2,2");
  settings.hosts[3].push_back({.bytes = {192, 0, 2, 77}, .udp_port = 47329});
  const std::string why = control::message_of<control::SetupError>([&] { fabric(settings, 3); });
  EXPECT_EQ(why.find("port 1 of server [1,1]: this host does not have the address 192.0.2.77"), 0u)
      << why;
}

TEST_F(UdpFabricTest, WakesAPollerThatSleeps) {
  TscClock clock;
  Poller poller(clock, control::Idle::adaptive, Poller::kCallPatience, 3'600'000'000'000);
  const control::ClusterSettings settings = settings_of("star:2");
  const auto to = fabric(settings, 1);
  to->connect([&](std::uint16_t) -> Poller& { return poller; });
  Receiver receiver(*to->ports(1)[0]);
  poller.add(receiver, Poller::TimeBase::clock);
  poller.announce_run();
  std::thread thread([&] { poller.run(); });
  const RawUdp from(address(0));
  for (unsigned sent = 1; sent <= 3; ++sent) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    from.send(address(1), datagram_of(frame(500, sent)));
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (receiver.received < sent && std::chrono::steady_clock::now() < end) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    EXPECT_EQ(receiver.received, sent) << "the poller sleeps on";
  }
  poller.stop();
  poller.await_end();
  thread.join();
  poller.remove(receiver);
}

}  // namespace
}  // namespace gradcube::dataplane
