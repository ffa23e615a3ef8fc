#include "bcube_forwarding/route.h"

#include <algorithm>
#include <gtest/gtest.h>
#include <vector>

namespace gradcube::bcube {
namespace {

TEST(Route, HasOneHopForEachDigitInWhichTheServersDiffer) {
  const AddressSpace space(std::vector<unsigned>{3, 2, 4});
  for (ServerId from = 0; from < space.servers(); ++from) {
    for (ServerId to = 0; to < space.servers(); ++to) {
      unsigned different = 0;
      for (unsigned level = 0; level < space.levels(); ++level) {
        different += space.digit(from, level) != space.digit(to, level) ? 1 : 0;
      }
      const Route route = shortest_route(space, from, to);
      ASSERT_EQ(route.size(), different);
      ServerId at = from;
      for (const Hop& hop : route) {
        ASSERT_NE(space.digit(at, hop.level), hop.digit) << "a hop to the server itself";
        at = space.with_digit(at, hop.level, hop.digit);
      }
      ASSERT_EQ(at, to);
    }
  }
}

TEST(Route, SetsTheDigitsUpwardsAndRound) {
  const AddressSpace space(std::vector<unsigned>{4, 4, 4});
  const Route up = shortest_route(space, space.parse("0,0,0"), space.parse("3,0,1"));
  ASSERT_EQ(up.size(), 2u);
  EXPECT_EQ(up[0], (Hop{0, 1}));
  EXPECT_EQ(up[1], (Hop{2, 3}));
  const Route round = shortest_route(space, space.parse("0,1,0"), space.parse("1,2,2"));
  ASSERT_EQ(round.size(), 3u);
  EXPECT_EQ(round[0], (Hop{1, 2}));
  EXPECT_EQ(round[1], (Hop{2, 1}));
  EXPECT_EQ(round[2], (Hop{0, 2}));
}

TEST(Route, BeginsAtALevelThatFollowsFromTheDifferenceAlone) {
  const AddressSpace space(std::vector<unsigned>{3, 2, 4});
  for (ServerId from = 0; from < space.servers(); ++from) {
    for (ServerId to = 0; to < space.servers(); ++to) {
      const ServerId differs = difference(space, from, to);
      const Route route = shortest_route(space, from, to);
      const Route same = shortest_route(space, 0, differs);
      ASSERT_EQ(route.size(), same.size());
      for (unsigned i = 0; i < route.size(); ++i) EXPECT_EQ(route[i].level, same[i].level);
    }
  }
}

// Over the routes from a server to all others: how many begin and end at each level.
TEST(Route, SpreadsOverTheLevels) {
  for (const auto& radices : std::vector<std::vector<unsigned>>{
           {3, 3}, {4, 4}, {5, 5}, {2, 2, 2}, {3, 3, 3}, {4, 4, 4}}) {
    const AddressSpace space(radices);
    std::vector<unsigned> begin(space.levels());
    std::vector<unsigned> end(space.levels());
    for (ServerId to = 1; to < space.servers(); ++to) {
      const Route route = shortest_route(space, 0, to);
      ++begin[route[0].level];
      ++end[route[route.size() - 1].level];
    }
    for (const auto& counts : {begin, end}) {
      const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
      EXPECT_LE(*most, *least * 5 / 4 + 1) << radices.size() << " levels of " << radices[0];
    }
  }
}

TEST(Route, HasRoomForEveryLevel) {
  const AddressSpace space(std::vector<unsigned>(kMaxLevels, 2));
  EXPECT_EQ(shortest_route(space, 0, space.servers() - 1).size(), kMaxLevels);
}

}  // namespace
}  // namespace gradcube::bcube
