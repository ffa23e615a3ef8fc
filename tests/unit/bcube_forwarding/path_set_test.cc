#include "bcube_forwarding/path_set.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tests/unit/bcube_forwarding/paths.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::bcube {
namespace {

// The spaces of every BCube(n,k) with at most `servers` servers and at least `levels` levels, and
// of some whose levels have different radices.
std::vector<AddressSpace> cubes(std::uint32_t servers, unsigned levels) {
  std::vector<AddressSpace> all;
  for (unsigned n = 2; n <= servers; ++n) {
    std::uint32_t count = n;
    for (unsigned k = 1; count <= servers && k <= kMaxLevels; ++k, count *= n) {
      if (k >= levels) all.emplace_back(std::vector<unsigned>(k, n));
    }
  }
  for (const std::vector<unsigned>& radices :
       std::vector<std::vector<unsigned>>{{2, 3}, {5, 2}, {2, 3, 4}, {4, 2, 3}, {3, 2, 2, 5}}) {
    const AddressSpace space(radices);
    if (space.servers() <= servers && radices.size() >= levels) all.push_back(space);
  }
  return all;
}

unsigned differing_digits(const AddressSpace& space, ServerId one, ServerId other) {
  unsigned differing = 0;
  for (unsigned level = 0; level < space.levels(); ++level) {
    if (space.digit(one, level) != space.digit(other, level)) ++differing;
  }
  return differing;
}

// What is wrong with a set of paths; empty if each arrives by hops to neighbours, no two share a
// switch or a server but the ends, and they are in order.
std::string fault_of(const AddressSpace& space, ServerId from, ServerId to,
                     const std::vector<Route>& paths) {
  std::vector<ServerId> inner;
  std::vector<SwitchId> switches;
  for (const Route& route : paths) {
    const std::vector<ServerId> servers = servers_on(space, from, route);
    if (servers.size() != route.size() + 1 || servers.front() != from || servers.back() != to) {
      return "a path does not arrive";
    }
    for (unsigned i = 0; i < route.size(); ++i) {
      if (differing_digits(space, servers[i], servers[i + 1]) != 1 ||
          space.digit(servers[i], route[i].level) == space.digit(servers[i + 1], route[i].level)) {
        return "a hop does not lead to a neighbour over its level";
      }
      switches.push_back({route[i].level, space.with_digit(servers[i], route[i].level, 0)});
    }
    inner.insert(inner.end(), servers.begin() + 1, servers.end() - 1);
  }
  inner.push_back(from);
  inner.push_back(to);
  std::sort(inner.begin(), inner.end());
  if (std::adjacent_find(inner.begin(), inner.end()) != inner.end()) return "a server is shared";
  std::sort(switches.begin(), switches.end());
  if (std::adjacent_find(switches.begin(), switches.end()) != switches.end()) {
    return "a switch is shared";
  }
  for (std::size_t i = 1; i < paths.size(); ++i) {
    const Route &one = paths[i - 1], &other = paths[i];
    if (one.size() > other.size() ||
        (one.size() == other.size() && one[0].level >= other[0].level)) {
      return "the paths are not in order";
    }
  }
  return "";
}

// As many paths as levels, of h or h + 2 hops.
void expect_a_full_set(const AddressSpace& space, ServerId from, ServerId to) {
  const std::vector<Route> paths = parallel_paths(space, from, to);
  const unsigned differing = differing_digits(space, from, to);
  // A path of 9 hops does not fit in a Route.
  const unsigned expected = differing + 2 > kMaxLevels ? differing : space.levels();
  ASSERT_EQ(paths.size(), expected) << text_of(space, from, paths);
  for (std::size_t i = 0; i < paths.size(); ++i) {
    ASSERT_EQ(paths[i].size(), i < differing ? differing : differing + 2)
        << text_of(space, from, paths);
  }
  ASSERT_EQ(fault_of(space, from, to, paths), "") << text_of(space, from, paths);
}

TEST(ParallelPaths, AreDisjointAndOnePerLevelBetweenAllServersOfAllSmallCubes) {
  for (const AddressSpace& space : cubes(256, 2)) {
    for (ServerId from = 0; from < space.servers(); ++from) {
      for (ServerId to = 0; to < space.servers(); ++to) {
        if (from == to) continue;
        ASSERT_NO_FATAL_FAILURE(expect_a_full_set(space, from, to))
            << space.text(from) << " to " << space.text(to);
      }
    }
  }
}

TEST(ParallelPaths, AreOneHopOnAStar) {
  for (unsigned n = 2; n <= kMaxRadix; ++n) {
    const AddressSpace space(std::vector<unsigned>{n});
    for (ServerId from = 0; from < n; ++from) {
      for (ServerId to = 0; to < n; ++to) {
        if (from == to) continue;
        const std::vector<Route> paths = parallel_paths(space, from, to);
        ASSERT_EQ(paths.size(), 1u);
        ASSERT_EQ(paths[0].size(), 1u);
        ASSERT_EQ(paths[0][0], (Hop{0, static_cast<std::uint8_t>(to)}));
      }
    }
  }
}

TEST(ParallelPaths, WorkWhereTheLevelsHaveDifferentRadices) {
  const AddressSpace space(std::vector<unsigned>{2, 5, 3, 4});
  for (ServerId from = 0; from < space.servers(); ++from) {
    for (ServerId to = 0; to < space.servers(); ++to) {
      if (from == to) continue;
      ASSERT_NO_FATAL_FAILURE(expect_a_full_set(space, from, to));
    }
  }
}

TEST(ParallelPaths, SetTheDigitsDownwardsFromTheLevelThatTheyLeaveOver) {
  const AddressSpace space(std::vector<unsigned>(3, 4));
  const ServerId from = space.parse("0,0,0");
  EXPECT_EQ(text_of(space, from, parallel_paths(space, from, space.parse("3,2,1"))),
            "[0,0,0]: [0,0,0] [0,0,1] [3,0,1] [3,2,1];"
            " [0,0,0] [0,2,0] [0,2,1] [3,2,1];"
            " [0,0,0] [3,0,0] [3,2,0] [3,2,1];");
  EXPECT_EQ(text_of(space, from, parallel_paths(space, from, space.parse("3,0,1"))),
            "[0,0,0]: [0,0,0] [0,0,1] [3,0,1];"
            " [0,0,0] [3,0,0] [3,0,1];"
            " [0,0,0] [0,1,0] [0,1,1] [3,1,1] [3,0,1];");
}

TEST(ParallelPaths, LeadNowhereFromAServerToItself) {
  const AddressSpace space(std::vector<unsigned>(2, 3));
  EXPECT_TRUE(parallel_paths(space, 4, 4).empty());
}

TEST(ParallelPaths, DetourOverAnotherNeighbourWhereTheFirstIsDown) {
  const AddressSpace space(std::vector<unsigned>(2, 4));
  const ServerId from = space.parse("0,0"), to = space.parse("0,2");
  const auto without = [&](const std::set<std::string>& down) {
    const auto works = [&](ServerId at, Hop hop) {
      return !down.contains(space.text(space.with_digit(at, hop.level, hop.digit)));
    };
    return text_of(space, from, parallel_paths(space, from, to, works));
  };
  const std::string straight = "[0,0]: [0,0] [0,2];";
  EXPECT_EQ(without({}), straight + " [0,0] [1,0] [1,2] [0,2];");
  EXPECT_EQ(without({"[1,0]"}), straight + " [0,0] [2,0] [2,2] [0,2];");
  EXPECT_EQ(without({"[1,0]", "[2,2]"}), straight + " [0,0] [3,0] [3,2] [0,2];");
  EXPECT_EQ(without({"[1,0]", "[2,2]", "[3,0]"}),
            straight + " [0,0] [2,0] [2,1] [1,1] [1,2] [0,2];");
}

TEST(ParallelPaths, AskWhetherAHopWorksInTheDirectionOfThePath) {
  const AddressSpace space(std::vector<unsigned>(2, 3));
  const ServerId from = space.parse("0,0"), relay = space.parse("0,1"), to = space.parse("2,1");
  const std::vector<Route> all = parallel_paths(space, from, to);
  const auto without = [&](ServerId one, ServerId other) {
    return parallel_paths(space, from, to, [=](ServerId at, Hop hop) {
      return at != one || space.with_digit(at, hop.level, hop.digit) != other;
    });
  };
  EXPECT_EQ(without(relay, from), all);
  EXPECT_EQ(without(to, relay), all);
  EXPECT_NE(without(from, relay), all);
  EXPECT_NE(without(relay, to), all);
}

TEST(ParallelPaths, HaveUpTo8Hops) {
  const AddressSpace space(std::vector<unsigned>(7, 3));
  const ServerId from = space.parse("1,1,1,1,1,1,1");
  const std::vector<Route> paths = parallel_paths(space, from, space.parse("0,0,0,1,0,0,0"));
  ASSERT_EQ(paths.size(), 7u);
  ASSERT_EQ(paths[6].size(), 8u);
  const Hop expected[] = {{3, 2}, {2, 0}, {1, 0}, {0, 0}, {6, 0}, {5, 0}, {4, 0}, {3, 1}};
  EXPECT_TRUE(std::equal(paths[6].begin(), paths[6].end(), expected));
}

// Servers, links and switches that are down.
struct Damage {
  std::set<ServerId> servers;
  std::set<std::pair<ServerId, unsigned>> links;  // a server's port
  std::set<SwitchId> switches;
};

Damage random_damage(const AddressSpace& space, std::mt19937_64& random) {
  Damage damage;
  const double most[] = {0, 0.05, 0.2, 0.5};
  std::bernoulli_distribution server(most[random() % 4]), link(most[random() % 4]),
      whole_switch(most[random() % 4]);
  for (ServerId s = 0; s < space.servers(); ++s) {
    if (server(random)) damage.servers.insert(s);
    for (unsigned level = 0; level < space.levels(); ++level) {
      if (link(random)) damage.links.insert({s, level});
      if (space.digit(s, level) == 0 && whole_switch(random)) damage.switches.insert({level, s});
    }
  }
  return damage;
}

bool works_despite(const Damage& damage, const AddressSpace& space, ServerId from, unsigned level,
                   ServerId to) {
  return !damage.servers.contains(from) && !damage.servers.contains(to) &&
         !damage.links.contains({from, level}) && !damage.links.contains({to, level}) &&
         !damage.switches.contains({level, space.with_digit(from, level, 0)});
}

bool is_whole(const Damage& damage, const AddressSpace& space, ServerId from, const Route& route) {
  const std::vector<ServerId> servers = servers_on(space, from, route);
  for (unsigned i = 0; i < route.size(); ++i) {
    if (!works_despite(damage, space, servers[i], route[i].level, servers[i + 1])) return false;
  }
  return true;
}

// Whether a path is whole that first goes to another server of the switch at `level`, where the
// digits of the ends are equal.
bool is_a_detour_whole(const Damage& damage, const AddressSpace& space, ServerId from, ServerId to,
                       unsigned level) {
  for (unsigned digit = 0; digit < space.radix(level); ++digit) {
    if (digit == space.digit(from, level)) continue;
    Route route;
    route.append({static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)});
    for (unsigned i = 1; i <= space.levels(); ++i) {
      const unsigned next = (level + space.levels() - i) % space.levels();
      const auto value = static_cast<std::uint8_t>(space.digit(to, next));
      if (next != level && value == space.digit(from, next)) continue;
      route.append({static_cast<std::uint8_t>(next), value});
    }
    if (is_whole(damage, space, from, route)) return true;
  }
  return false;
}

// Whether hops that work, 8 at most, lead from one server to the other.
bool are_connected(const Damage& damage, const AddressSpace& space, ServerId from, ServerId to) {
  std::set<ServerId> reached = {from};
  for (unsigned hops = 0; hops < kMaxLevels && !reached.contains(to); ++hops) {
    std::set<ServerId> more = reached;
    for (const ServerId at : reached) {
      for (unsigned level = 0; level < space.levels(); ++level) {
        for (unsigned digit = 0; digit < space.radix(level); ++digit) {
          const ServerId next = space.with_digit(at, level, digit);
          if (works_despite(damage, space, at, level, next)) more.insert(next);
        }
      }
    }
    if (more == reached) break;
    reached = more;
  }
  return reached.contains(to);
}

// The damage with all that the paths pass down as well.
Damage with_paths_down(Damage damage, const AddressSpace& space, ServerId from,
                       const std::vector<Route>& paths) {
  for (const Route& route : paths) {
    const std::vector<ServerId> servers = servers_on(space, from, route);
    damage.servers.insert(servers.begin() + 1, servers.end() - 1);
    for (const SwitchId which : switches_on(space, from, route)) damage.switches.insert(which);
  }
  return damage;
}

void expect_working_paths(const AddressSpace& space, ServerId from, ServerId to,
                          const Damage& damage) {
  const std::vector<Route> paths = parallel_paths(space, from, to, [&](ServerId at, Hop hop) {
    return works_despite(damage, space, at, hop.level, space.with_digit(at, hop.level, hop.digit));
  });
  SCOPED_TRACE(text_of(space, from, paths) + " to " + space.text(to));
  EXPECT_EQ(fault_of(space, from, to, paths), "");
  EXPECT_EQ(!paths.empty(), are_connected(damage, space, from, to));
  EXPECT_LE(paths.size(), space.levels());
  for (const Route& route : paths) EXPECT_TRUE(is_whole(damage, space, from, route));
  for (const Route& route : parallel_paths(space, from, to)) {
    const bool found = std::find(paths.begin(), paths.end(), route) != paths.end();
    EXPECT_EQ(found, is_whole(damage, space, from, route)) << "a path of the set";
  }
  for (unsigned level = 0; level < space.levels(); ++level) {
    if (space.digit(from, level) != space.digit(to, level)) continue;
    if (!is_a_detour_whole(damage, space, from, to, level)) continue;
    EXPECT_TRUE(std::any_of(paths.begin(), paths.end(),
                            [&](const Route& route) { return route[0].level == level; }))
        << "no detour over level " << level;
  }
  const Damage all_taken = with_paths_down(damage, space, from, paths);
  EXPECT_FALSE(are_connected(all_taken, space, from, to)) << "there is a further path";
}

TEST(ParallelPaths, AvoidWhatIsDownAndAreFoundWhileThereAreAny) {
  const std::uint64_t seed = protocol::test_seed(20090817);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  const std::vector<AddressSpace> all = cubes(64, 1);
  const std::vector<AddressSpace> deep = cubes(64, 3);  // few of all
  for (unsigned draw = 0; draw < 1000 && !testing::Test::HasFailure(); ++draw) {
    const std::vector<AddressSpace>& spaces = draw % 2 == 0 ? all : deep;
    const AddressSpace& space = spaces[random() % spaces.size()];
    const Damage damage = random_damage(space, random);
    for (unsigned pair = 0; pair < 5; ++pair) {
      const ServerId from = static_cast<ServerId>(random() % space.servers());
      const ServerId to = static_cast<ServerId>(random() % space.servers());
      if (from != to) expect_working_paths(space, from, to, damage);
    }
  }
}

TEST(PathSet, NamesASwitchByTheServerWithDigitZero) {
  const AddressSpace space(std::vector<unsigned>(2, 3));
  const ServerId server = space.parse("2,1");
  EXPECT_EQ(switch_of(space, server, {0, 0}), (SwitchId{0, space.parse("2,0")}));
  EXPECT_EQ(switch_of(space, server, {1, 0}), (SwitchId{1, space.parse("0,1")}));
}

TEST(PathSet, ListsTheServersAndTheSwitchesOfARoute) {
  const AddressSpace space(std::vector<unsigned>(2, 3));
  Route route;
  EXPECT_EQ(servers_on(space, 4, route), std::vector<ServerId>{4});
  EXPECT_TRUE(switches_on(space, 4, route).empty());
  route.append({1, 2});
  route.append({0, 0});
  EXPECT_EQ(servers_on(space, space.parse("1,1"), route),
            (std::vector<ServerId>{space.parse("1,1"), space.parse("2,1"), space.parse("2,0")}));
  EXPECT_EQ(switches_on(space, space.parse("1,1"), route),
            (std::vector<SwitchId>{{1, space.parse("0,1")}, {0, space.parse("2,0")}}));
}

// All of them lead there, none is there twice, and the parallel ones come first.
TEST(CandidatePaths, AreTheParallelOnesAndTheDetoursOverOtherNeighbours) {
  const AddressSpace space(std::vector<unsigned>{4, 4});
  const ServerId to = space.parse("0,1");
  const std::vector<Route> paths = candidate_paths(space, 0, to, 8);
  EXPECT_EQ(text_of(space, 0, paths),
            "[0,0]: [0,0] [0,1]; [0,0] [1,0] [1,1] [0,1]; [0,0] [2,0] [2,1] [0,1];"
            " [0,0] [3,0] [3,1] [0,1];");
  EXPECT_EQ(candidate_paths(space, 0, to, 3).size(), 3u);
  const auto without = [&](ServerId from, Hop hop) {
    const ServerId down = space.parse("2,0");
    return from != down && space.with_digit(from, hop.level, hop.digit) != down;
  };
  EXPECT_EQ(candidate_paths(space, 0, to, 8, without).size(), 3u);
  // Where all digits differ there are no detours.
  EXPECT_EQ(candidate_paths(space, 0, space.parse("1,1"), 8),
            parallel_paths(space, 0, space.parse("1,1")));
}

}  // namespace
}  // namespace gradcube::bcube
