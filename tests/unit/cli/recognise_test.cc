#include "cli/setup/recognise.h"

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bcube_forwarding/joined_ports.h"
#include "control/plan/base/topology.h"

namespace gradcube::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using JointSet = std::set<HostPort>;

std::uint32_t cables_seed() {
  const char* const given = std::getenv("GRADCUBE_TEST_SEED");
  return given == nullptr ? 20261126 : static_cast<std::uint32_t>(std::strtoul(given, nullptr, 10));
}

// "h0 eth0", "h0 eth1", "h1 eth0", ...
Cables uncabled(std::size_t count, std::size_t ports) {
  Cables cables;
  for (std::size_t host = 0; host < count; ++host) {
    CabledHost own{.name = fmt::format("h{}", host), .ports = {}};
    for (std::size_t port = 0; port < ports; ++port) {
      own.ports.push_back({.name = fmt::format("eth{}", port), .mtu = 1500});
    }
    cables.hosts.push_back(own);
  }
  return cables;
}

void join_ports(Cables& cables, const std::vector<HostPort>& ports) {
  for (const HostPort one : ports) {
    for (const HostPort other : ports) {
      if (one != other) cables.heard.emplace(one, other);
    }
  }
}

void cut_port(Cables& cables, HostPort port) {
  std::erase_if(cables.heard,
                [port](const auto& pair) { return pair.first == port || pair.second == port; });
}

// Hosts that are cabled as this topology, and a spare port each, all in any order.
Cables shuffled(const control::Topology& topology, std::mt19937& random) {
  const std::size_t count = topology.servers();
  Cables cables = uncabled(count, topology.ports() + 1);
  std::vector<std::size_t> who(count);
  std::iota(who.begin(), who.end(), 0);
  std::shuffle(who.begin(), who.end(), random);
  std::vector<std::vector<std::size_t>> port(count, std::vector<std::size_t>(topology.ports() + 1));
  for (auto& own : port) {
    std::iota(own.begin(), own.end(), 0);
    std::shuffle(own.begin(), own.end(), random);
  }
  for (const auto& joint : bcube::joined_ports(topology.space())) {
    std::vector<HostPort> ports;
    for (const bcube::ServerPort at : joint) {
      ports.push_back({who[at.server], port[at.server][at.port]});
    }
    join_ports(cables, ports);
  }
  return cables;
}

std::set<JointSet> joints_of(const Cables& cables) {
  std::set<JointSet> joints;
  for (const auto& [hears, heard] : cables.heard) {
    JointSet joint{hears};
    for (const auto& [one, other] : cables.heard) {
      if (one == hears) joint.insert(other);
    }
    joints.insert(joint);
  }
  return joints;
}

// Whether the proposal's servers and ports are joined as its topology says.
std::set<JointSet> joints_of(const Proposal& proposal) {
  std::set<JointSet> joints;
  for (const auto& ports : bcube::joined_ports(proposal.topology.space())) {
    JointSet joint;
    for (const bcube::ServerPort at : ports) {
      joint.insert({proposal.hosts[at.server], proposal.ports[at.server][at.port]});
    }
    joints.insert(joint);
  }
  return joints;
}

class EveryTopology : public testing::TestWithParam<const char*> {};

TEST_P(EveryTopology, IsRecognisedHoweverItsCablesAreShuffled) {
  const control::Topology topology = control::parse_topology(GetParam(), "a test");
  std::mt19937 random(cables_seed());
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(fmt::format("GRADCUBE_TEST_SEED={}, round {}", cables_seed(), round));
    const Cables cables = shuffled(topology, random);
    const Recognised recognised = recognise(cables);
    ASSERT_THAT(recognised.faults, IsEmpty());
    bool is_found = false;
    for (const Proposal& proposal : recognised.proposals) {
      EXPECT_EQ(joints_of(proposal), joints_of(cables));
      EXPECT_TRUE(proposal.uses_all);
      std::vector<unsigned> radices;
      std::vector<unsigned> wanted;
      for (const control::Dimension& each : proposal.topology.dimensions()) {
        radices.push_back(each.radix);
      }
      for (const control::Dimension& each : topology.dimensions()) wanted.push_back(each.radix);
      is_found = is_found || (proposal.topology.kind() == topology.kind() &&
                              std::is_permutation(radices.begin(), radices.end(), wanted.begin(),
                                                  wanted.end()));
    }
    EXPECT_TRUE(is_found);
  }
}

// bcube:2,2 is a ring of four, and bcube:2,4 a torus:4,2.
INSTANTIATE_TEST_SUITE_P(Cabled, EveryTopology,
                         testing::Values("star:2", "star:3", "star:9", "star:24", "bcube:2,2",
                                         "bcube:3,2", "bcube:2,3", "bcube:3,3", "bcube:2,4",
                                         "bcube:4x3", "bcube:2x3x4", "bcube:5,2", "torus:3,1",
                                         "torus:4,1", "torus:5,1", "torus:9,1", "torus:3,2",
                                         "torus:4,2", "torus:5,2", "torus:3,3"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace_if(
                               name.begin(), name.end(),
                               [](char letter) { return letter == ':' || letter == ','; }, '_');
                           return name;
                         });

TEST(Recognise, ProposesTheBCubeFirstWhereARingIsOneToo) {
  std::mt19937 random(cables_seed());
  const Recognised recognised =
      recognise(shuffled(control::parse_topology("torus:4,1", "a test"), random));
  ASSERT_THAT(recognised.proposals, SizeIs(2));
  EXPECT_EQ(recognised.proposals[0].topology.spec(), "bcube:2,2");
  EXPECT_EQ(recognised.proposals[1].topology.spec(), "torus:4,1");
}

TEST(Recognise, MakesARingOfAFullMesh) {
  Cables cables = uncabled(5, 4);
  for (std::size_t one = 0; one < 5; ++one) {
    for (std::size_t other = one + 1; other < 5; ++other) {
      join_ports(cables, {{one, other - 1}, {other, one}});
    }
  }
  const Recognised recognised = recognise(cables);
  ASSERT_THAT(recognised.proposals, SizeIs(1));
  EXPECT_EQ(recognised.proposals[0].topology.spec(), "torus:5,1");
  EXPECT_FALSE(recognised.proposals[0].uses_all);
}

TEST(Recognise, NamesAPortThatHearsNobody) {
  Cables cables = uncabled(9, 2);
  const control::Topology topology = control::parse_topology("bcube:3,2", "a test");
  for (const auto& joint : bcube::joined_ports(topology.space())) {
    std::vector<HostPort> ports;
    for (const bcube::ServerPort at : joint) ports.push_back({at.server, at.port});
    join_ports(cables, ports);
  }
  EXPECT_THAT(recognise(cables).proposals, SizeIs(1));
  cut_port(cables, {4, 1});
  EXPECT_THAT(recognise(cables).proposals, IsEmpty());
  EXPECT_THAT(
      recognise(cables).faults,
      ElementsAre("1 of h4's ports hears somebody, and others have 2", "h4 eth1 hears nobody"));
  cables.hosts[4].ports[1].has_carrier = false;
  EXPECT_THAT(recognise(cables).faults.back(), HasSubstr("h4 eth1 has no carrier"));
  cables.hosts[4].ports[1].is_up = false;
  EXPECT_THAT(recognise(cables).faults.back(), HasSubstr("`ip link set dev eth1 up`"));
}

TEST(Recognise, NamesAHostThatHasNoPortToUse) {
  Cables cables = uncabled(2, 1);
  cables.hosts[1].ports.clear();
  EXPECT_THAT(recognise(cables).faults,
              ElementsAre("none of h0's ports hears anybody", "h0 eth0 hears nobody",
                          "h1 has no Ethernet interface without an IP address"));
}

TEST(Recognise, NamesTheSwitchesOfACableThatIsAtAnother) {
  Cables cables = uncabled(9, 2);
  for (std::size_t i = 0; i < 3; ++i) {
    join_ports(cables, {{3 * i, 0}, {3 * i + 1, 0}, {3 * i + 2, 0}});
  }
  join_ports(cables, {{0, 1}, {3, 1}});
  join_ports(cables, {{1, 1}, {4, 1}, {7, 1}, {6, 1}});
  join_ports(cables, {{2, 1}, {5, 1}, {8, 1}});
  // h6 and h7 are then at two switches with each other.
  EXPECT_THAT(recognise(cables).faults,
              ElementsAre(HasSubstr("h6 and h7 are joined twice, by h1 eth1, h4 eth1, h6 eth1, h7 "
                                    "eth1 and by h6 eth0, h7 eth0, h8 eth0")));
}

TEST(Recognise, NamesTwoCablesThatAreCrossed) {
  std::vector<std::vector<HostPort>> joints = {{{0, 0}, {1, 0}, {2, 0}}, {{3, 0}, {4, 0}, {5, 0}},
                                               {{6, 0}, {7, 0}, {8, 0}}, {{0, 1}, {3, 1}, {7, 1}},
                                               {{1, 1}, {4, 1}, {6, 1}}, {{2, 1}, {5, 1}, {8, 1}}};
  Cables cables = uncabled(9, 2);
  for (const auto& joint : joints) join_ports(cables, joint);
  // Crossed so, they are a BCube of others again.
  EXPECT_THAT(recognise(cables).proposals, SizeIs(1));
  cables.heard.clear();
  joints[3] = {{0, 1}, {3, 1}, {1, 1}};
  joints[4] = {{7, 1}, {4, 1}, {6, 1}};
  for (const auto& joint : joints) join_ports(cables, joint);
  EXPECT_THAT(recognise(cables).faults, ElementsAre(HasSubstr("h0 and h1 are joined twice"),
                                                    HasSubstr("h6 and h7 are joined twice")));
}

TEST(Recognise, SaysWhichHostsMissASquare) {
  Cables cables =
      uncabled(6, 2);  // a ring of six, by switches, is no BCube; and of cables it is one
  for (std::size_t i = 0; i < 6; ++i) join_ports(cables, {{i, 0}, {(i + 1) % 6, 1}});
  EXPECT_EQ(recognise(cables).proposals.at(0).topology.spec(), "torus:6,1");
  Cables grid = uncabled(6, 3);  // two triangles, joined by three cables: no torus has it
  for (std::size_t i = 0; i < 3; ++i) {
    join_ports(grid, {{i, 0}, {(i + 1) % 3, 1}});
    join_ports(grid, {{i + 3, 0}, {(i + 1) % 3 + 3, 1}});
    join_ports(grid, {{i, 2}, {i + 3, 2}});
  }
  EXPECT_THAT(recognise(grid).faults, ElementsAre(HasSubstr("one more host is joined to both")));
}

TEST(Recognise, NamesPortsOfAHostAtOneSwitch) {
  Cables cables = uncabled(3, 2);
  join_ports(cables, {{0, 0}, {0, 1}, {1, 0}, {1, 1}, {2, 0}, {2, 1}});
  EXPECT_THAT(recognise(cables).faults, SizeIs(3));
  EXPECT_THAT(recognise(cables).faults.front(),
              HasSubstr("h0 eth0 and h0 eth1 are at one switch or cable"));
}

TEST(Recognise, NamesACableThatPassesOneWay) {
  Cables cables = uncabled(2, 1);
  cables.heard.emplace(HostPort{1, 0}, HostPort{0, 0});
  EXPECT_THAT(recognise(cables).faults,
              ElementsAre("h1 eth0 hears h0 eth0, and is not heard there"));
}

TEST(Recognise, SaysWhichHostsNothingJoins) {
  Cables cables = uncabled(4, 1);
  join_ports(cables, {{0, 0}, {2, 0}});
  join_ports(cables, {{1, 0}, {3, 0}});
  EXPECT_THAT(recognise(cables).faults, ElementsAre("nothing joins h1, h3 to h0, h2"));
}

TEST(Recognise, NamesTwoCablesBetweenTheSameHosts) {
  Cables cables = uncabled(2, 2);
  join_ports(cables, {{0, 0}, {1, 1}});
  join_ports(cables, {{0, 1}, {1, 0}});
  EXPECT_THAT(recognise(cables).faults, ElementsAre(HasSubstr("joined twice")));
}

}  // namespace
}  // namespace gradcube::cli
