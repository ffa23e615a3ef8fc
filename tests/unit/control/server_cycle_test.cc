#include "control/plan/algorithms/server_cycle.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/control/topologies.h"

namespace gradcube::control {
namespace {

// Every server once, each one hop from the next, and the last from the first.
void expect_a_cycle(const Topology& topology, const Placement& placement) {
  const std::vector<Rank> cycle = server_cycle(placement);
  ASSERT_EQ(cycle.size(), placement.ranks());
  ASSERT_EQ(std::set<Rank>(cycle.begin(), cycle.end()).size(), cycle.size());
  ASSERT_LT(*std::max_element(cycle.begin(), cycle.end()), placement.ranks());
  for (std::size_t i = 0; i < cycle.size(); ++i) {
    const ServerId here = placement.server(cycle[i]);
    const ServerId next = placement.server(cycle[(i + 1) % cycle.size()]);
    ASSERT_EQ(bcube::shortest_route(topology.space(), here, next).size(), 1u)
        << topology.space().text(here) << " and " << topology.space().text(next);
  }
}

TEST(ServerCycle, JoinsNeighboursAndVisitsAllOnEveryTopologyUpTo256Servers) {
  for (const Topology& topology : small_topologies(256)) {
    SCOPED_TRACE(topology.spec());
    expect_a_cycle(topology, Placement::all(topology));
  }
}

TEST(ServerCycle, JoinsNeighboursOnEveryGridOfServers) {
  for (const Topology& topology :
       {parse_topology("bcube:4,2", "test"), parse_topology("bcube:2,4", "test"),
        parse_topology("bcube:5x2x3", "test")}) {
    for (const std::vector<ServerId>& members : all_grids(topology)) {
      if (members.size() < 2) continue;
      expect_a_cycle(topology, Placement::of(topology, members, "test"));
    }
  }
}

TEST(ServerCycle, OfAStarIsTheOrderOfItsServers) {
  const Topology star = parse_topology("star:5", "test");
  EXPECT_EQ(server_cycle(Placement::all(star)), (std::vector<Rank>{0, 1, 2, 3, 4}));
}

TEST(ServerCycle, GoesThroughTheRowsAndComesBackOverTheirFirstServers) {
  const Topology cube = parse_topology("bcube:3,2", "test");
  std::string text;
  for (const Rank rank : server_cycle(Placement::all(cube))) text += cube.space().text(rank);
  EXPECT_EQ(text, "[0,0][0,1][0,2][1,2][1,1][2,1][2,2][2,0][1,0]");
}

}  // namespace
}  // namespace gradcube::control
