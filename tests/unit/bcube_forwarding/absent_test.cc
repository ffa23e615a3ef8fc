// Addresses without a server: routes and paths between the others against a plain search, on random
// sets of absent servers.

#include <algorithm>
#include <gtest/gtest.h>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/path_set.h"
#include "bcube_forwarding/route.h"
#include "tests/unit/bcube_forwarding/paths.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::bcube {
namespace {

AddressSpace thirteen_of_sixteen() {
  const AddressSpace whole(std::vector<unsigned>{4, 4});
  return whole.without(std::vector<ServerId>{13, 14, 15});
}

TEST(AbsentServers, AreNoServersButKeepTheirAddresses) {
  const AddressSpace space = thirteen_of_sixteen();
  EXPECT_EQ(space.servers(), 13u);
  EXPECT_EQ(space.addresses(), 16u);
  EXPECT_FALSE(space.is_whole());
  EXPECT_TRUE(space.contains(12));
  EXPECT_FALSE(space.contains(13));
  EXPECT_FALSE(space.contains(16));
  EXPECT_EQ(space.absent_list(), (std::vector<ServerId>{13, 14, 15}));
  EXPECT_EQ(space.server_list().size(), 13u);
  EXPECT_EQ(space.server_list().back(), 12u);
  EXPECT_EQ(space.parse("3,0"), 12u);
  try {
    space.parse("3,1");
    FAIL() << "an absent server was read";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(), "\"3,1\" is absent: the cluster has no server at this address");
  }
}

TEST(AbsentServers, MakeASpaceAnotherOne) {
  const AddressSpace whole(std::vector<unsigned>{4, 4});
  const AddressSpace part = thirteen_of_sixteen();
  EXPECT_NE(part, whole);
  EXPECT_NE(whole, part);
  EXPECT_EQ(part, thirteen_of_sixteen());
  EXPECT_NE(part, whole.without(std::vector<ServerId>{13, 14}));
  EXPECT_EQ(part.without({}), whole);
  EXPECT_THROW((void)whole.without(std::vector<ServerId>{16}), std::invalid_argument);
  EXPECT_THROW((void)whole.without(whole.server_list()), std::invalid_argument);
}

TEST(AbsentServers, AreNobodysNeighbours) {
  const AddressSpace space = thirteen_of_sixteen();
  const NeighbourTable corner(space, space.parse("3,0"));
  EXPECT_TRUE(corner.behind(0).empty());
  EXPECT_EQ(corner.behind(1).size(), 3u);
  EXPECT_EQ(corner.find(0, 1), nullptr);
  EXPECT_FALSE(corner.is_behind(0, 13));
  const NeighbourTable above(space, space.parse("2,1"));
  EXPECT_EQ(above.behind(1).size(), 2u);
  EXPECT_EQ(above.find(1, 3), nullptr);
  ASSERT_NE(above.find(1, 1), nullptr);
  EXPECT_EQ(above.find(1, 1)->server, space.parse("1,1"));
  EXPECT_THROW(NeighbourTable(space, 13), std::invalid_argument);
}

TEST(AbsentServers, LeaveEveryMemberSomebodyWhoComesNextToIt) {
  const AddressSpace space = thirteen_of_sixteen();
  const std::vector<ServerId> diagonal = {0, 5, 10};
  EXPECT_TRUE(next_in_lines(space, 5, diagonal).empty());
  EXPECT_EQ(next_to(space, 0, diagonal), (std::vector<ServerId>{5, 10}));
  EXPECT_EQ(next_to(space, 5, diagonal), (std::vector<ServerId>{0, 10}));
  EXPECT_EQ(next_to(space, 0, {0, 5}), (std::vector<ServerId>{5}));
  EXPECT_EQ(next_to(space, 0, {0}), (std::vector<ServerId>{}));
  const std::vector<ServerId> grid = {0, 1, 4, 5};
  EXPECT_EQ(next_to(space, 0, grid), next_in_lines(space, 0, grid));
}

// All small BCubes, some with levels of different radices, and tori.
std::vector<AddressSpace> small_spaces() {
  std::vector<AddressSpace> all;
  for (unsigned n = 2; n <= 64; ++n) {
    unsigned count = n;
    for (unsigned k = 1; count <= 64; ++k, count *= n) {
      all.emplace_back(std::vector<unsigned>(k, n));
    }
  }
  for (const std::vector<unsigned>& radices :
       std::vector<std::vector<unsigned>>{{2, 3}, {5, 2}, {2, 3, 4}, {3, 2, 2, 5}}) {
    all.emplace_back(radices);
  }
  for (const std::vector<unsigned>& radices :
       std::vector<std::vector<unsigned>>{{3}, {6}, {12}, {3, 3}, {4, 4}, {5, 3}, {3, 3, 3}}) {
    all.emplace_back(radices, Joint::cables);
  }
  return all;
}

AddressSpace random_part(const AddressSpace& whole, std::mt19937_64& random) {
  const double most[] = {0.1, 0.3, 0.5, 0.7};
  std::bernoulli_distribution is_absent(most[random() % 4]);
  std::vector<ServerId> absent;
  for (ServerId server = 0; server < whole.addresses(); ++server) {
    if (is_absent(random)) absent.push_back(server);
  }
  if (absent.size() == whole.addresses()) absent.pop_back();
  return whole.without(absent);
}

bool one_hop(const AddressSpace& space, ServerId one, ServerId other) {
  unsigned differing = 0;
  bool joined = false;
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned a = space.digit(one, level), b = space.digit(other, level);
    if (a == b) continue;
    ++differing;
    const unsigned n = space.radix(level);
    joined = !space.cabled() || (a + 1) % n == b || (b + 1) % n == a;
  }
  return differing == 1 && joined;
}

// The hops from a server to all that can be reached over servers that are there.
std::map<ServerId, unsigned> hops_from(const AddressSpace& space, ServerId from) {
  std::map<ServerId, unsigned> hops = {{from, 0}};
  std::vector<ServerId> order = {from};
  for (std::size_t i = 0; i < order.size(); ++i) {
    for (const ServerId next : space.server_list()) {
      if (hops.contains(next) || !one_hop(space, order[i], next)) continue;
      hops[next] = hops[order[i]] + 1;
      order.push_back(next);
    }
  }
  return hops;
}

// Each hop leads to a server that is there, and the last one to the end.
void expect_a_way(const AddressSpace& space, ServerId from, ServerId to, const Route& route) {
  const std::vector<ServerId> servers = servers_on(space, from, route);
  SCOPED_TRACE(text_of(space, from, {route}));
  EXPECT_EQ(servers.back(), to);
  for (std::size_t i = 1; i < servers.size(); ++i) {
    EXPECT_TRUE(space.contains(servers[i])) << "an absent relay";
    EXPECT_TRUE(one_hop(space, servers[i - 1], servers[i])) << "no hop";
  }
}

void expect_disjoint(const AddressSpace& space, ServerId from, const std::vector<Route>& paths) {
  std::set<ServerId> inner;
  std::set<SwitchId> switches;
  for (const Route& route : paths) {
    const std::vector<ServerId> servers = servers_on(space, from, route);
    for (std::size_t i = 1; i + 1 < servers.size(); ++i) {
      EXPECT_TRUE(inner.insert(servers[i]).second) << "a server is shared";
    }
    for (const SwitchId which : switches_on(space, from, route)) {
      EXPECT_TRUE(switches.insert(which).second) << "a switch or cable is shared";
    }
  }
}

void expect_ways(const AddressSpace& space, ServerId from, ServerId to,
                 std::optional<unsigned> hops) {
  const bool reachable = hops.has_value() && *hops <= kMaxLevels;
  const Route shortest = shortest_route(space, from, to);
  EXPECT_EQ(shortest.size(), reachable ? *hops : 0);
  if (reachable) expect_a_way(space, from, to, shortest);
  const std::vector<Route> paths = parallel_paths(space, from, to);
  EXPECT_EQ(!paths.empty(), reachable);
  for (const Route& route : paths) expect_a_way(space, from, to, route);
  expect_disjoint(space, from, paths);
  for (const Route& route : candidate_paths(space, from, to, 16)) {
    expect_a_way(space, from, to, route);
  }
  for (const Route& route : message_paths(space, from, to)) {
    EXPECT_LE(route.size(), most_hops(space));
  }
  EXPECT_LE(shortest.size(), most_hops(space));
}

TEST(AbsentServers, AreOnNoRouteAndAllOthersReachEachOtherWhereTheGraphAllowsIt) {
  const std::uint64_t seed = protocol::test_seed(20091123);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  for (const AddressSpace& whole : small_spaces()) {
    for (unsigned draw = 0; draw < 6; ++draw) {
      const AddressSpace space = random_part(whole, random);
      const std::vector<ServerId> servers = space.server_list();
      const ServerId from = servers[random() % servers.size()];
      const auto hops = hops_from(space, from);
      for (const ServerId to : servers) {
        if (to == from) continue;
        const auto found = hops.find(to);
        SCOPED_TRACE(space.text(from) + " to " + space.text(to) + " of " +
                     std::to_string(servers.size()) + " servers");
        expect_ways(space, from, to,
                    found == hops.end() ? std::nullopt : std::optional(found->second));
        if (testing::Test::HasFailure()) return;
      }
    }
  }
}

TEST(AbsentServers, TakeNoPathFromWholeSpaces) {
  const AddressSpace whole(std::vector<unsigned>{3, 3, 3});
  const AddressSpace same = whole.without({});
  for (ServerId to = 1; to < whole.servers(); ++to) {
    EXPECT_EQ(parallel_paths(whole, 0, to), parallel_paths(same, 0, to));
    EXPECT_EQ(shortest_route(whole, 0, to), shortest_route(same, 0, to));
  }
  EXPECT_EQ(most_hops(same), 5u);
  EXPECT_EQ(most_hops(whole.without(std::vector<ServerId>{1})), 8u);
}

}  // namespace
}  // namespace gradcube::bcube
