// Where cables join the servers: ports, neighbours, routes and parallel paths on a torus.
#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "bcube_forwarding/path_set.h"
#include "tests/unit/bcube_forwarding/paths.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::bcube {
namespace {

AddressSpace torus(unsigned n, unsigned h) {
  return AddressSpace(std::vector<unsigned>(h, n), Joint::cables);
}

std::vector<AddressSpace> tori(std::uint32_t servers) {
  std::vector<AddressSpace> all;
  for (unsigned n = kLeastRing; n <= 20; ++n) {
    std::uint32_t count = n;
    for (unsigned h = 1; count <= servers && h <= 4; ++h, count *= n) all.push_back(torus(n, h));
  }
  all.emplace_back(std::vector<unsigned>{3, 4, 5}, Joint::cables);
  return all;
}

// By a search over cables, from one server to all.
std::vector<unsigned> searched_distances(const AddressSpace& space, ServerId from) {
  std::vector<unsigned> distances(space.servers(), UINT32_MAX);
  std::vector<ServerId> reached = {from};
  distances[from] = 0;
  for (std::size_t i = 0; i < reached.size(); ++i) {
    const NeighbourTable table(space, reached[i]);
    for (unsigned port = 0; port < space.ports(); ++port) {
      const ServerId next = table.behind(port).front().server;
      if (distances[next] != UINT32_MAX) continue;
      distances[next] = distances[reached[i]] + 1;
      reached.push_back(next);
    }
  }
  return distances;
}

TEST(Torus, APortLeadsToTheNextDigitAndItsPairToTheOneBefore) {
  const AddressSpace space = torus(4, 2);
  const NeighbourTable table(space, space.parse("0,3"));
  const char* expected[] = {"0,0", "0,2", "1,3", "3,3"};
  for (unsigned port = 0; port < 4; ++port) {
    ASSERT_EQ(table.behind(port).size(), 1u);
    const Neighbour& neighbour = table.behind(port).front();
    EXPECT_EQ(neighbour.server, space.parse(expected[port]));
    EXPECT_EQ(neighbour.port, port);
    EXPECT_EQ(neighbour.level, port / 2);
    EXPECT_EQ(neighbour.address, embedded_link_address(port ^ 1U, neighbour.server))
        << "a cable ends at the other port of the pair";
    EXPECT_EQ(table.find(neighbour.level, neighbour.digit), &neighbour);
    for (ServerId server = 0; server < 40; ++server) {
      EXPECT_EQ(table.is_behind(port, server), server == neighbour.server);
    }
  }
  EXPECT_EQ(table.find(0, 1), nullptr) << "two hops away";
  EXPECT_EQ(table.find(0, 3), nullptr) << "the server itself";
  EXPECT_EQ(table.find(2, 0), nullptr);
  EXPECT_EQ(table.find(0, 4), nullptr);
  EXPECT_FALSE(table.is_behind(4, space.parse("0,0")));
}

TEST(Torus, NamesACableByItsEnds) {
  const AddressSpace space = torus(3, 2);
  EXPECT_EQ(space.joint_text(space.parse("2,1"), 0), "0/[2,1]-[2,2]");
  EXPECT_EQ(space.joint_text(space.parse("2,2"), 1), "0/[2,1]-[2,2]");
  EXPECT_EQ(space.joint_text(space.parse("2,1"), 2), "1/[2,1]-[0,1]");
  EXPECT_EQ(space.joint_text(space.parse("0,1"), 3), "1/[2,1]-[0,1]");
}

TEST(Torus, RefusesARingOfTwo) {
  EXPECT_THROW(torus(2, 2), std::invalid_argument);
  EXPECT_NO_THROW(torus(3, 2));
}

TEST(Torus, RoutesGoOverCablesAndAreAsShortAsAny) {
  for (const AddressSpace& space : tori(125)) {
    unsigned farthest = 0;
    for (ServerId from = 0; from < space.servers(); ++from) {
      const std::vector<unsigned> distances = searched_distances(space, from);
      for (ServerId to = 0; to < space.servers(); ++to) {
        ASSERT_EQ(distance(space, from, to), distances[to]);
        ASSERT_EQ(are_neighbours(space, from, to), distances[to] == 1);
        farthest = std::max(farthest, distances[to]);
        const Route route = shortest_route(space, from, to);
        ASSERT_EQ(route.size(), distances[to] > kMaxLevels ? 0 : distances[to]);
        ServerId at = from;
        for (const Hop& hop : route) {
          ASSERT_TRUE(space.joins(hop.level, space.digit(at, hop.level), hop.digit))
              << space.text(from) << " to " << space.text(to);
          at = space.with_digit(at, hop.level, hop.digit);
        }
        if (route.size() != 0) {
          ASSERT_EQ(at, to);
        }
      }
    }
    EXPECT_EQ(diameter(space), farthest);
  }
}

TEST(Torus, HalfOfTheServersGoEachWayRoundWhereBothAreAsLong) {
  const AddressSpace space = torus(4, 1);
  std::vector<unsigned> first_digits;
  for (ServerId from = 0; from < 4; ++from) {
    first_digits.push_back(shortest_route(space, from, (from + 2) % 4)[0].digit);
  }
  EXPECT_EQ(first_digits, (std::vector<unsigned>{1, 0, 3, 2}));
}

TEST(Torus, AFrameHasRoomForAWayAroundAFailureUpTo8Hops) {
  EXPECT_EQ(most_hops(torus(3, 2)), 4u);
  EXPECT_EQ(most_hops(torus(4, 2)), 6u);
  EXPECT_EQ(most_hops(torus(3, 7)), 8u);
  EXPECT_EQ(most_hops(torus(5, 1)), 4u) << "the other way round";
  EXPECT_EQ(most_hops(torus(100, 1)), 8u);
}

// What is wrong with a set of paths; empty if each arrives over cables, no two share a cable or a
// server but the ends, and they are in order.
std::string fault_on_torus(const AddressSpace& space, ServerId from, ServerId to,
                           const std::vector<Route>& paths) {
  std::set<ServerId> passed = {from, to};
  std::set<SwitchId> cables;
  const Route* before = nullptr;
  for (const Route& route : paths) {
    const std::vector<ServerId> servers = servers_on(space, from, route);
    if (servers.back() != to) return "a path does not arrive";
    for (std::size_t i = 0; i < route.size(); ++i) {
      if (distance(space, servers[i], servers[i + 1]) != 1) return "a hop has no cable";
    }
    for (std::size_t i = 1; i + 1 < servers.size(); ++i) {
      if (!passed.insert(servers[i]).second) return "a server is shared";
    }
    for (const SwitchId cable : switches_on(space, from, route)) {
      if (!cables.insert(cable).second) return "a cable is shared";
    }
    if (before != nullptr && before->size() > route.size()) return "the paths are not in order";
    before = &route;
  }
  return "";
}

// The hops of the paths of the set, by its rules; those that are too long are left out.
std::multiset<unsigned> expected_hops(const AddressSpace& space, ServerId from, ServerId to) {
  std::multiset<unsigned> hops;
  const unsigned direct = distance(space, from, to);
  for (unsigned level = 0; level < space.levels(); ++level) {
    const unsigned at_level =
        distance(space, from, space.with_digit(from, level, space.digit(to, level)));
    const unsigned other = at_level == 0 ? direct + 2 : direct + space.radix(level) - 2 * at_level;
    for (const unsigned one : {at_level == 0 ? direct + 2 : direct, other}) {
      if (one <= kMaxLevels) hops.insert(one);
    }
  }
  return hops;
}

TEST(Torus, HasADisjointPathThroughEachPortBetweenAnyTwoServersThatAreNotTooFarApart) {
  for (const AddressSpace& space : tori(125)) {
    for (ServerId from = 0; from < space.servers(); from += 1 + space.servers() / 40) {
      for (ServerId to = 0; to < space.servers(); ++to) {
        if (from == to) continue;
        const std::vector<Route> paths = parallel_paths(space, from, to);
        std::multiset<unsigned> hops;
        for (const Route& route : paths) hops.insert(route.size());
        ASSERT_EQ(fault_on_torus(space, from, to, paths), "") << text_of(space, from, paths);
        // In the place of a path that is too long there may be a substitute.
        const std::multiset<unsigned> expected = expected_hops(space, from, to);
        ASSERT_TRUE(std::includes(hops.begin(), hops.end(), expected.begin(), expected.end()))
            << text_of(space, from, paths);
        ASSERT_LE(paths.size(), space.ports());
        if (diameter(space) <= 4) {
          ASSERT_EQ(paths.size(), space.ports());
        }
      }
    }
  }
}

// Whether cables that work, 8 at most, lead from one server to the other.
bool do_cables_connect(const AddressSpace& space, const std::set<SwitchId>& down, ServerId from,
                       ServerId to) {
  std::set<ServerId> reached = {from};
  for (unsigned hops = 0; hops < kMaxLevels; ++hops) {
    std::set<ServerId> more = reached;
    for (const ServerId at : reached) {
      for (unsigned level = 0; level < space.levels(); ++level) {
        const unsigned own = space.digit(at, level);
        for (const unsigned digit :
             {space.next_digit(level, own), space.previous_digit(level, own)}) {
          const Hop hop{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
          if (!down.contains(switch_of(space, at, hop)))
            more.insert(space.with_digit(at, level, digit));
        }
      }
    }
    reached = more;
  }
  return reached.contains(to);
}

TEST(Torus, FindsPathsAroundCablesThatAreDownWhileThereAreAny) {
  const std::uint64_t seed = protocol::test_seed(20180621);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::vector<AddressSpace> all = tori(64);
  for (unsigned draw = 0; draw < 600 && !testing::Test::HasFailure(); ++draw) {
    const AddressSpace& space = all[random() % all.size()];
    const double most[] = {0.02, 0.1, 0.3, 0.6};
    std::bernoulli_distribution fails(most[random() % 4]);
    std::set<SwitchId> down;
    for (ServerId server = 0; server < space.servers(); ++server) {
      for (unsigned level = 0; level < space.levels(); ++level) {
        if (fails(random)) down.insert({level, server});
      }
    }
    const auto from = static_cast<ServerId>(random() % space.servers());
    const auto to = static_cast<ServerId>(random() % space.servers());
    if (from == to) continue;
    const auto works = [&](ServerId at, Hop hop) {
      return !down.contains(switch_of(space, at, hop));
    };
    const std::vector<Route> paths = parallel_paths(space, from, to, works);
    SCOPED_TRACE(text_of(space, from, paths) + " to " + space.text(to));
    EXPECT_EQ(fault_on_torus(space, from, to, paths), "");
    EXPECT_EQ(!paths.empty(), do_cables_connect(space, down, from, to));
    for (const Route& route : paths) {
      for (const SwitchId cable : switches_on(space, from, route))
        EXPECT_FALSE(down.contains(cable));
    }
  }
}

}  // namespace
}  // namespace gradcube::bcube
