#include "control/settings/host_list.h"

#include <gtest/gtest.h>
#include <string>
#include <utility>

#include "control/base/errors.h"
#include "control/settings/cluster_file.h"
#include "tests/unit/control/message.h"

namespace gradcube::control {
namespace {

std::string read_again(std::string_view text) { return hosts_text(parse_hosts(text, "--hosts")); }

std::string hosts_refusal(const char* topology, std::string_view hosts) {
  return message_of<UsageError>(
      [&] { validate_hosts(parse_topology(topology, ""), parse_hosts(hosts, "--hosts")); });
}

TEST(HostList, IsTheSameForAllWaysToWriteIt) {
  EXPECT_EQ(read_again("10.0.0.1 10.0.0.2"), "10.0.0.1 10.0.0.2");
  EXPECT_EQ(read_again("  10.0.0.1,10.1.0.1:47330\n10.0.0.2:5000 "),
            "10.0.0.1,10.1.0.1 10.0.0.2:5000");
  EXPECT_EQ(read_again("FD00:0:0::1 [fd00::2]:5000 [fd00::3]:47330"),
            "fd00::1 [fd00::2]:5000 fd00::3");
}

TEST(HostList, RefusesWhatIsNoAddressOfAHost) {
  using std::string_view_literals::operator""sv;
  for (const std::string_view text : {""sv,
                                      " "sv,
                                      "a"sv,
                                      "10.0.0"sv,
                                      "10.0.0.1.2"sv,
                                      "10.0.0.256"sv,
                                      "10.0.0.1:"sv,
                                      "10.0.0.1:0"sv,
                                      "10.0.0.1:65536"sv,
                                      "10.0.0.1:x"sv,
                                      "[10.0.0.1]"sv,
                                      "[10.0.0.1]:5"sv,
                                      "[fd00::1"sv,
                                      "fd00::1]"sv,
                                      "[fd00::1]5"sv,
                                      "fd00::1%eth0"sv,
                                      "0.0.0.0"sv,
                                      "224.0.0.1"sv,
                                      "255.255.255.255"sv,
                                      "::"sv,
                                      "ff02::1"sv,
                                      "fe80::1"sv,
                                      "[febf::1]:5000"sv,
                                      "10.0.0.1,,10.0.0.2"sv,
                                      "10.0.0.1;10.0.0.2"sv,
                                      "10.0.0.1\0"sv,
                                      "host1"sv}) {
    EXPECT_TRUE(
        message_of<UsageError>([&] { parse_hosts(text, "--hosts"); }).starts_with("--hosts"))
        << text;
  }
  EXPECT_EQ(
      message_of<UsageError>([] { parse_hosts("10.0.0.1 node2", "--hosts"); }),
      "--hosts \"node2\": expected the IPv4 or IPv6 address of a host, and its UDP port if it "
      "is not 47330: 10.0.0.1, 10.0.0.1:5000, fd00::1 or [fd00::1]:5000");
}

TEST(HostList, HasOneRowForEachServer) {
  EXPECT_EQ(hosts_refusal("star:2", "10.0.0.1 10.0.0.2"), "");
  EXPECT_EQ(
      hosts_refusal("star:3", "10.0.0.1 10.0.0.2"),
      "hosts: 2 named, and star:3 has 3 servers; expected one for each, in the order of their "
      "addresses");
  EXPECT_EQ(hosts_refusal("bcube:2,2", "10.0.0.1 10.0.0.2 10.0.0.3 10.0.0.4,10.1.0.4"), "");
  EXPECT_EQ(hosts_refusal("star:2", "10.0.0.1,10.1.0.1 10.0.0.2"),
            "hosts: server [0] has 2 addresses, and 1 port; expected one address for all ports, "
            "or one for each, level 0 first, and a --topology whose servers have as many ports: "
            "star:N has 1, bcube:N,2 has 2");
  const Topology partial = parse_absent(parse_topology("bcube:2,2", ""), "0,1", "");
  const HostList hosts = parse_hosts("10.0.0.1 10.0.0.2 10.0.0.3", "");
  EXPECT_NO_THROW(validate_hosts(partial, hosts));
  EXPECT_EQ(host_text(host_of_port(partial, hosts, 2, 0)), "10.0.0.2");
}

TEST(HostList, RefusesTwoPortsAtOneAddressAndBothFamilies) {
  EXPECT_EQ(hosts_refusal("star:3", "10.0.0.1 10.0.0.2 10.0.0.1"),
            "hosts: port 0 of server [0] and port 0 of server [2] are both at 10.0.0.1: expected "
            "another address, or another UDP port (1 or more apart)");
  EXPECT_EQ(hosts_refusal("star:3", "10.0.0.1 10.0.0.1:47331 10.0.0.1:47332"), "");
  EXPECT_NE(hosts_refusal("bcube:2,2", "10.0.0.1 10.0.0.1:47331 10.0.0.2 10.0.0.3").find("both at"),
            std::string::npos);
  EXPECT_NE(hosts_refusal("star:2", "10.0.0.1 fd00::1").find("of the other family"),
            std::string::npos);
  EXPECT_NE(
      hosts_refusal("bcube:2,2", "10.0.0.1:65535 10.0.0.2 10.0.0.3 10.0.0.4").find("at most 65534"),
      std::string::npos);
}

TEST(HostList, GivesEachPortAUdpPortOfItsOwn) {
  const Topology topology = parse_topology("bcube:2,2", "");
  const HostList hosts = parse_hosts("10.0.0.1 10.0.0.2 10.0.0.3,10.1.0.3 10.0.0.4:6000", "");
  EXPECT_EQ(host_text(host_of_port(topology, hosts, 1, 0)), "10.0.0.2");
  EXPECT_EQ(host_text(host_of_port(topology, hosts, 1, 1)), "10.0.0.2:47331");
  EXPECT_EQ(host_text(host_of_port(topology, hosts, 2, 1)), "10.1.0.3:47331");
  EXPECT_EQ(host_text(host_of_port(topology, hosts, 3, 1)), "10.0.0.4:6001");
}

TEST(HostList, StandsInAClusterFileAsRows) {
  const std::string begin = "[topology]\nspec = \"bcube:2,2\"\nhosts = ";
  const std::string end = "\n[link]\nfabric = \"udp\"\n";
  const std::string expected = "10.0.0.1,10.1.0.1 10.0.0.2 10.0.0.3 10.0.0.4";
  for (const std::string rows :
       {R"([["10.0.0.1", "10.1.0.1"], "10.0.0.2", ["10.0.0.3"], "10.0.0.4"])",
        R"(["10.0.0.1,10.1.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"])",
        R"("10.0.0.1,10.1.0.1 10.0.0.2 10.0.0.3 10.0.0.4")"}) {
    EXPECT_EQ(hosts_text(parse_cluster_file(begin + rows + end, "c.toml").hosts), expected) << rows;
  }
  EXPECT_NE(message_of<UsageError>([&] {
              parse_cluster_file(begin + "[[[\"10.0.0.1\"]]]" + end, "c");
            }).find("a list in a list"),
            std::string::npos);
}

}  // namespace
}  // namespace gradcube::control
