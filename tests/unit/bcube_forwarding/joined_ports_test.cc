#include "bcube_forwarding/joined_ports.h"

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace gradcube::bcube {
namespace {

using Ports = std::vector<ServerPort>;

AddressSpace joined_space(std::vector<unsigned> radices, Joint joint) {
  return AddressSpace(radices, joint);
}

TEST(JoinedPorts, AreThoseOfEachSwitchByLevelAndFirstServer) {
  const auto joined = joined_ports(joined_space({2, 3}, Joint::switches));
  ASSERT_EQ(joined.size(), 5u);
  EXPECT_EQ(joined[0], (Ports{{0, 0}, {1, 0}}));
  EXPECT_EQ(joined[2], (Ports{{4, 0}, {5, 0}}));
  EXPECT_EQ(joined[3], (Ports{{0, 1}, {2, 1}, {4, 1}}));
  EXPECT_EQ(joined[4], (Ports{{1, 1}, {3, 1}, {5, 1}}));
}

TEST(JoinedPorts, AreTheTwoEndsOfEachCableFirstTheEvenPort) {
  const auto joined = joined_ports(joined_space({3, 3}, Joint::cables));
  ASSERT_EQ(joined.size(), 18u);
  EXPECT_EQ(joined[0], (Ports{{0, 0}, {1, 1}}));
  EXPECT_EQ(joined[2], (Ports{{2, 0}, {0, 1}}));
  EXPECT_EQ(joined[9], (Ports{{0, 2}, {3, 3}}));
  EXPECT_EQ(joined[17], (Ports{{8, 2}, {2, 3}}));
}

TEST(JoinedPorts, AreEachPortOnceAndTheSameJointAtAllOfThem) {
  for (const Joint joint : {Joint::switches, Joint::cables}) {
    const AddressSpace space = joined_space({3, 4, 5}, joint);
    std::map<std::pair<ServerId, unsigned>, unsigned> seen;
    for (const Ports& ports : joined_ports(space)) {
      const std::string name = space.joint_text(ports.front().server, ports.front().port);
      for (const auto& [server, port] : ports) {
        EXPECT_EQ(space.joint_text(server, port), name);
        ++seen[{server, port}];
      }
    }
    EXPECT_EQ(seen.size(), std::size_t{space.servers()} * space.ports());
    for (const auto& [port, times] : seen) EXPECT_EQ(times, 1u);
  }
}

}  // namespace
}  // namespace gradcube::bcube
