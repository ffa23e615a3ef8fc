#include "bcube_forwarding/route.h"

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

TEST(Route, SetsTheDigitsFromLevelZeroUp) {
  const AddressSpace space(std::vector<unsigned>{4, 4, 4});
  const Route route = shortest_route(space, space.parse("0,0,0"), space.parse("3,0,1"));
  ASSERT_EQ(route.size(), 2u);
  EXPECT_EQ(route[0], (Hop{0, 1}));
  EXPECT_EQ(route[1], (Hop{2, 3}));
}

TEST(Route, HasRoomForEveryLevel) {
  const AddressSpace space(std::vector<unsigned>(kMaxLevels, 2));
  EXPECT_EQ(shortest_route(space, 0, space.servers() - 1).size(), kMaxLevels);
}

}  // namespace
}  // namespace gradcube::bcube
