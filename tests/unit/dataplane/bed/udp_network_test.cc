#include "dataplane/bed/udp_network.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "control/base/errors.h"

namespace gradcube::dataplane {
namespace {

control::ClusterSettings three_servers() {
  control::ClusterSettings settings;
  settings.fabric = control::FabricKind::udp;
  settings.topology = control::parse_topology("star:3", "test");
  return settings;
}

TEST(UdpNetwork, GivesServersAddressesThatNoOtherBedHas) {
  control::ClusterSettings settings = three_servers();
  control::ClusterSettings others = settings;
  const UdpNetwork network(settings);
  const UdpNetwork beside(others);
  for (const control::ClusterSettings& each : {settings, others}) {
    EXPECT_NO_THROW(control::validate(each));
    EXPECT_EQ(each.hosts.size(), 3u);
    for (const control::HostRow& row : each.hosts) {
      EXPECT_EQ(control::host_text(row.front()).find("127."), 0u);
    }
  }
  EXPECT_NE(settings.hosts, others.hosts);
}

TEST(UdpNetwork, LeavesHostsThatAreGiven) {
  control::ClusterSettings settings = three_servers();
  settings.hosts = control::parse_hosts("127.0.0.5 127.0.0.6 127.0.0.7", "test");
  const control::HostList given = settings.hosts;
  const UdpNetwork network(settings);
  EXPECT_EQ(settings.hosts, given);
}

TEST(UdpNetwork, HasLinksThatAreUpAndCannotBeImpaired) {
  control::ClusterSettings settings = three_servers();
  UdpNetwork network(settings);
  const nlohmann::ordered_json report = network.report();
  EXPECT_EQ(report["impairments"]["up"], true);
  EXPECT_TRUE(report["impaired_links"].empty());
  EXPECT_TRUE(report["switches"].empty());
  EXPECT_THROW(network.impair({{"command", "impair"}, {"up", false}}), control::UsageError);
}

}  // namespace
}  // namespace gradcube::dataplane
