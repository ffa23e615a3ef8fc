// Servers with several ports on the one switch.
#include <algorithm>
#include <gtest/gtest.h>
#include <stdexcept>
#include <vector>

#include "bcube_forwarding/joined_ports.h"
#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"

namespace gradcube::bcube {
namespace {

// A star of four servers, of which the last two have several ports.
AddressSpace railed() { return AddressSpace(std::vector<unsigned>{4}).with_ports({1, 1, 2, 3}); }

TEST(Rails, AreAsManyAsTheServerWithMorePortsHas) {
  const AddressSpace space = railed();
  EXPECT_EQ(space.ports(0), 1u);
  EXPECT_EQ(space.ports(3), 3u);
  EXPECT_EQ(space.most_ports(), 3u);
  EXPECT_EQ(space.rails(0, 1), 1u);
  EXPECT_EQ(space.rails(0, 2), 2u);
  EXPECT_EQ(space.rails(3, 2), 3u);
  EXPECT_EQ(space.hop_digits(0), 12u);
  EXPECT_EQ(space.level_of_port(2), 0u);
  EXPECT_NE(space, AddressSpace(std::vector<unsigned>{4}));
  EXPECT_EQ(space.with_ports({1, 1, 1, 1}), AddressSpace(std::vector<unsigned>{4}));
}

TEST(Rails, LeadFromAPortToAPortAndBack) {
  const AddressSpace space = railed();
  for (ServerId from = 0; from < 4; ++from) {
    const NeighbourTable own(space, from);
    std::size_t rows = 0;
    for (unsigned port = 0; port < space.ports(from); ++port) rows += own.behind(port).size();
    std::size_t expected = 0;
    for (ServerId to = 0; to < 4; ++to) {
      if (to == from) continue;
      const NeighbourTable others(space, to);
      expected += space.rails(from, to);
      for (unsigned rail = 0; rail < space.rails(from, to); ++rail) {
        const Hop hop = hop_over(space, from, to, rail);
        const Neighbour* there = own.find(hop.level, hop.digit);
        ASSERT_NE(there, nullptr);
        EXPECT_EQ(there->server, to);
        EXPECT_EQ(there->port, rail % space.ports(from));
        EXPECT_EQ(there->address, embedded_link_address(rail % space.ports(to), to));
        EXPECT_TRUE(own.is_behind(there->port, to));
        const Neighbour* back =
            others.find(hop.level, space.digit_back(from, hop.level, hop.digit));
        ASSERT_NE(back, nullptr);
        EXPECT_EQ(back->server, from);
        EXPECT_EQ(back->own, there->address);
        EXPECT_EQ(back->address, there->own);
        Route route;
        route.append(hop);
        EXPECT_EQ(servers_on(space, from, route), (std::vector<ServerId>{from, to}));
        EXPECT_EQ(port_at_end(space, from, route), rail % space.ports(to));
      }
      EXPECT_EQ(own.find(0, space.hop_digit(to, 0, space.rails(from, to))), nullptr)
          << "no rail is left over";
    }
    EXPECT_EQ(rows, expected);
  }
}

TEST(Rails, AreParallelPathsOfWhichEachMayFailAlone) {
  const AddressSpace space = railed();
  EXPECT_EQ(parallel_paths(space, 0, 1).size(), 1u);
  const std::vector<Route> paths = parallel_paths(space, 0, 3);
  ASSERT_EQ(paths.size(), 3u);
  const Hop down = paths[1][0];
  const auto left = parallel_paths(space, 0, 3, [&](ServerId, Hop hop) { return hop != down; });
  EXPECT_EQ(left, (std::vector<Route>{paths[0], paths[2]}));
}

TEST(Rails, ArePortsOfTheOneSwitch) {
  const auto joined = joined_ports(railed());
  ASSERT_EQ(joined.size(), 1u);
  EXPECT_EQ(joined[0],
            (std::vector<ServerPort>{{0, 0}, {1, 0}, {2, 0}, {2, 1}, {3, 0}, {3, 1}, {3, 2}}));
}

TEST(Rails, AreOfOneSwitchAloneAndAsManyAsADigitCanName) {
  const AddressSpace cube(std::vector<unsigned>{2, 2});
  EXPECT_THROW(cube.with_ports({1, 1, 1, 2}), std::invalid_argument);
  EXPECT_EQ(cube.with_ports({1, 1, 1, 1}), cube);
  const AddressSpace star(std::vector<unsigned>{3});
  EXPECT_THROW(star.with_ports({1, 1}), std::invalid_argument);
  EXPECT_THROW(star.with_ports({1, 0, 1}), std::invalid_argument);
  EXPECT_THROW(star.with_ports({1, 1, kMostRails + 1}), std::invalid_argument);
  std::vector<unsigned> many(128, 1);
  many.back() = 2;
  EXPECT_NO_THROW(AddressSpace(std::vector<unsigned>{128}).with_ports(many));
  many.push_back(1);
  EXPECT_THROW(AddressSpace(std::vector<unsigned>{129}).with_ports(many), std::invalid_argument);
}

}  // namespace
}  // namespace gradcube::bcube
