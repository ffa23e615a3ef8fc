#include "control/settings/switch_parts.h"

#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "control/plan/base/topology.h"

namespace gradcube::control {
namespace {

bcube::AddressSpace space_named(const std::string& topology) {
  return parse_topology(topology, "").space();
}

TEST(SwitchParts, PutAllSwitchesThatFitIntoOneProcess) {
  const SwitchParts parts(space_named("bcube:4,2"), 32);
  EXPECT_EQ(parts.count(), 1u);
  EXPECT_EQ(parts.of(15, 1), 0u);
}

TEST(SwitchParts, HaveNoRoomForAbsentServers) {
  const Topology whole = parse_topology("bcube:8,2", "");
  std::vector<ServerId> lower;  // the rows 4 to 7
  for (ServerId server = 32; server < 64; ++server) lower.push_back(server);
  EXPECT_EQ(SwitchParts(whole.space(), 32).count(), 4u);
  const bcube::AddressSpace upper = whole.without(lower).space();
  const SwitchParts parts(upper, 32);
  EXPECT_EQ(parts.count(), 2u);
  std::map<unsigned, unsigned> ports;
  for (const ServerId server : upper.server_list()) {
    for (unsigned port = 0; port < 2; ++port) ++ports[parts.of(server, port)];
  }
  EXPECT_EQ(ports, (std::map<unsigned, unsigned>{{0, 32}, {1, 32}}));
}

TEST(SwitchParts, NeverDivideASwitchAndNeverExceedThePortsOfAProcess) {
  for (const char* topology : {"bcube:3,3", "bcube:2,4", "bcube:8,2", "bcube:4x3x2", "star:32",
                               "torus:3,2", "torus:4,2", "torus:5,1", "torus:4,3"}) {
    const bcube::AddressSpace space = space_named(topology);
    const SwitchParts parts(space, 32);
    std::map<std::string, std::set<unsigned>> of_switch;
    std::map<unsigned, unsigned> ports;
    for (bcube::ServerId server = 0; server < space.servers(); ++server) {
      for (unsigned port = 0; port < space.ports(); ++port) {
        const unsigned part = parts.of(server, port);
        ASSERT_LT(part, parts.count()) << topology;
        of_switch[space.joint_text(server, port)].insert(part);
        ++ports[part];
      }
    }
    for (const auto& [name, all] : of_switch) EXPECT_EQ(all.size(), 1u) << topology << " " << name;
    EXPECT_EQ(ports.size(), parts.count()) << topology;
    for (const auto& [part, count] : ports) EXPECT_LE(count, 32u) << topology << " " << part;
  }
  EXPECT_EQ(SwitchParts(space_named("bcube:8,2"), 32).count(), 4u);
}

TEST(SwitchParts, TakeACableForASwitchWithTwoPorts) {
  // 18 cables, and 16 in a process.
  const SwitchParts parts(space_named("torus:3,2"), 32);
  EXPECT_EQ(parts.count(), 2u);
  EXPECT_EQ(parts.of(4, 0), 0u);
  // The cable from [1,2] to [2,2], and the last one, from there to [0,2].
  EXPECT_EQ(parts.of(5, 2), 0u);
  EXPECT_EQ(parts.of(8, 3), 0u);
  EXPECT_EQ(parts.of(8, 2), 1u);
  EXPECT_EQ(parts.of(2, 3), 1u);
}

TEST(SwitchParts, RefuseASwitchThatNoProcessHolds) {
  EXPECT_THROW(SwitchParts(space_named("star:33"), 32), UsageError);
}

}  // namespace
}  // namespace gradcube::control
