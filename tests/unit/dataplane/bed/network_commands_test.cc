#include "dataplane/bed/network_commands.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "control/plan/base/topology.h"

namespace gradcube::dataplane {
namespace {

std::vector<BedLink> links_of(const char* topology) {
  return bed_links(control::parse_topology(topology, ""));
}

bool has_line(const std::string& text, const std::string& line) {
  return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

TEST(BedLinks, JoinServersThatDifferInTheLevelsDigitAlone) {
  const auto links = links_of("bcube:3,2");
  ASSERT_EQ(links.size(), 18u);
  const BedLink& link = links[7 * 2 + 1];
  EXPECT_EQ(link.server, 7u);
  EXPECT_EQ(link.level, 1u);
  EXPECT_EQ(link.switch_name, "1/[*,1]");
  EXPECT_EQ(link.bridge, "sw-x-1");
  EXPECT_EQ(link.port, "p2-1.1");
  EXPECT_EQ(link.interface, "level1");
  for (const BedLink& other : links) {
    EXPECT_EQ(other.bridge == link.bridge, other.switch_name == link.switch_name);
  }
}

TEST(BedLinks, OfATorusAreCablesBetweenTwoPorts) {
  const auto links = links_of("torus:3,2");
  ASSERT_EQ(links.size(), 36u);
  const BedLink& link = links[7 * 4 + 2];
  EXPECT_EQ(link.server, 7u);
  EXPECT_EQ(link.level, 1u);
  EXPECT_EQ(link.server_port, 2u);
  EXPECT_EQ(link.switch_name, "1/[2,1]-[0,1]");
  EXPECT_EQ(link.bridge, "c2-1.1");
  EXPECT_EQ(link.port, "p2-1.2");
  EXPECT_EQ(link.interface, "port2");
  const BedLink& far = links[1 * 4 + 3];
  EXPECT_EQ(far.bridge, link.bridge);
  EXPECT_EQ(far.switch_name, link.switch_name);
  std::map<std::string, int> ends;
  for (const BedLink& each : links) ++ends[each.bridge];
  EXPECT_EQ(ends.size(), 18u);
  for (const auto& [bridge, count] : ends) EXPECT_EQ(count, 2) << bridge;
}

TEST(BedLinks, OfATreeLeadToTheBridgesOfItsLowestLevel) {
  const auto tree = control::parse_topology("tree:2x3x2", "");
  const auto links = bed_links(tree);
  ASSERT_EQ(links.size(), 12u);
  EXPECT_EQ(links[7].bridge, "t0.3");
  EXPECT_EQ(links[7].interface, "level0");
  const auto uplinks = bed_uplinks(tree);
  ASSERT_EQ(uplinks.size(), 6u + 2);
  EXPECT_EQ(uplinks[3].below, "t0.3");
  EXPECT_EQ(uplinks[3].above, "t1.1");
  EXPECT_EQ(uplinks[3].up, "u1.3");
  EXPECT_EQ(uplinks[3].down, "d1.3");
  EXPECT_EQ(uplinks[3].sharers, 2u);
  EXPECT_EQ(uplinks[7].below, "t1.1");
  EXPECT_EQ(uplinks[7].above, "t2.0");
  EXPECT_EQ(uplinks[7].sharers, 6u);
  EXPECT_EQ(bed_uplinks(tree.without({6, 7})).size(), 7u) << "nobody is below switch 3";
  EXPECT_TRUE(bed_uplinks(control::parse_topology("star:4", "")).empty());
}

TEST(BedLinks, HaveNamesThatTheKernelTakesAndThatDiffer) {
  for (const char* topology :
       {"bcube:2,6", "bcube:8,2", "star:64", "bcube:4,3", "torus:4,3", "torus:64,1"}) {
    std::set<std::string> ports;
    for (const BedLink& link : links_of(topology)) {
      EXPECT_TRUE(ports.insert(link.port).second) << link.port;
      for (const std::string& name : {link.bridge, link.port, link.interface}) {
        EXPECT_LE(name.size(), 15u) << name;
      }
    }
  }
}

TEST(NetworkCommands, MakeABridgePerSwitchAndPutEachLinksEndsInTheirPlaces) {
  const std::vector<pid_t> pids = {1000, 1001, 1002, 1003};
  const std::string text = switch_side_commands(links_of("bcube:2,2"), pids, 1500);
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 4 + 2 * 8 + 4);
  EXPECT_TRUE(
      has_line(text, "link add name sw-x-1 mtu 1500 type bridge stp_state 0 mcast_snooping 0"));
  EXPECT_TRUE(has_line(
      text, "link add name p1-0.1 mtu 1500 type veth peer name level1 mtu 1500 netns 1002"));
  EXPECT_TRUE(has_line(text, "link set dev p1-0.1 master sw-x-0 up"));
  EXPECT_TRUE(has_line(text, "link set dev sw-x-0 mtu 1500 up"));
}

TEST(NetworkCommands, BringUpAServersInterfaces) {
  const auto links = links_of("bcube:2,2");
  EXPECT_EQ(server_side_commands(std::span(links).subspan(2, 2)),
            "link set dev level0 up\nlink set dev level1 up\n");
}

TEST(NetworkCommands, BoundTheQueueOfASwitchPortAlone) {
  control::ClusterSettings settings;
  settings.mtu = 1500;
  settings.rates = control::LinkRates(100'000'000);
  settings.queue_bytes = 64'000;
  const auto links = links_of("star:2");
  EXPECT_EQ(switch_queue_commands(links, settings),
            "qdisc add dev p0.0 root tbf rate 100000000bit burst 4614 limit 64000 overhead 24\n"
            "qdisc add dev p1.0 root tbf rate 100000000bit burst 4614 limit 64000 overhead 24\n");
  EXPECT_EQ(server_queue_commands(std::span(links).first(1), settings),
            "qdisc add dev level0 root tbf rate 100000000bit burst 4614 limit 1550336 overhead "
            "24\n");
}

TEST(NetworkCommands, LimitEachLevelToItsRate) {
  control::ClusterSettings settings;
  settings.rates = control::LinkRates(std::vector<std::uint64_t>{100'000'000, 10'000'000});
  const auto links = links_of("bcube:2,2");
  const std::string text = switch_queue_commands(std::span(links).first(2), settings);
  EXPECT_NE(text.find("p0-0.0 root tbf rate 100000000bit"), std::string::npos) << text;
  EXPECT_NE(text.find("p0-0.1 root tbf rate 10000000bit"), std::string::npos) << text;
}

TEST(NetworkCommands, JoinTheBridgesOfATreeByUplinksWithTheirRates) {
  control::ClusterSettings settings;
  settings.topology = control::parse_topology("tree:2x2", "");
  settings.rates = control::LinkRates(100'000'000);
  settings.oversubscription = 4;
  settings.mtu = 1500;
  settings.queue_bytes = 64'000;
  const auto uplinks = bed_uplinks(settings.topology);
  EXPECT_EQ(uplink_commands(std::span(uplinks).first(1), 1500),
            "link add name t1.0 mtu 1500 type bridge stp_state 0 mcast_snooping 0\n"
            "link add name u1.0 mtu 1500 type veth peer name d1.0 mtu 1500\n"
            "link set dev u1.0 master t0.0 up\nlink set dev d1.0 master t1.0 up\n"
            "link set dev t0.0 mtu 1500 up\nlink set dev t1.0 mtu 1500 up\n");
  EXPECT_EQ(uplink_queue_commands(std::span(uplinks).first(1), settings),
            "qdisc add dev u1.0 root tbf rate 50000000bit burst 4614 limit 128000 overhead 24\n"
            "qdisc add dev d1.0 root tbf rate 50000000bit burst 4614 limit 128000 overhead 24\n");
  EXPECT_EQ(uplink_commands({}, 1500), "");
  settings.rates = {};
  EXPECT_EQ(uplink_queue_commands(uplinks, settings), "");
}

TEST(NetworkCommands, LetABurstPassThatIsAsLongAsATimerMayBeLate) {
  control::ClusterSettings settings;
  settings.rates = control::LinkRates(40'000'000'000);
  EXPECT_NE(switch_queue_commands(links_of("star:2"), settings).find(" burst 250000 "),
            std::string::npos);
}

TEST(NetworkCommands, QueueNothingWithoutARate) {
  const control::ClusterSettings settings;
  EXPECT_EQ(switch_queue_commands(links_of("star:2"), settings), "");
  EXPECT_EQ(server_queue_commands(links_of("star:2"), settings), "");
}

TEST(NetworkCommands, TakeTheSwitchsEndOfALinkDown) {
  const auto links = links_of("bcube:2,2");
  EXPECT_EQ(link_state_commands(std::span(links).first(2), false),
            "link set dev p0-0.0 down\nlink set dev p0-0.1 down\n");
  EXPECT_EQ(link_state_commands(std::span(links).first(1), true), "link set dev p0-0.0 up\n");
}

}  // namespace
}  // namespace gradcube::dataplane
