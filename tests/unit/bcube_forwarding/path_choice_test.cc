// Which path a flow should take by what is left of each.

#include "bcube_forwarding/path_choice.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradcube::bcube {
namespace {

using State = PathNews::State;

constexpr std::uint64_t kRate = 1000;

Route route_of(unsigned hops, std::uint8_t first_digit) {
  Route route;
  for (unsigned hop = 0; hop < hops; ++hop) {
    route.append({static_cast<std::uint8_t>(hop), first_digit});
  }
  return route;
}

const Route kOwn = route_of(2, 1);
const Route kOther = route_of(2, 2);
const Route kLonger = route_of(4, 3);

PathNews path(const Route& route, std::uint64_t left, State state = State::answers) {
  return {route, state, 1000, left};
}

TEST(PathChoice, TakesThePathThatHasMostLeftIfTheOwnOneIsNearlyFull) {
  const std::vector<PathNews> paths = {path(kOwn, 0), path(kOther, 900), path(route_of(2, 4), 950)};
  EXPECT_EQ(better_path(paths, kOwn, 500, kRate), 2u);
}

TEST(PathChoice, StaysWhileTheOwnPathHasAQuarterLeft) {
  const std::vector<PathNews> paths = {path(kOwn, kRate / 4), path(kOther, 1000)};
  EXPECT_EQ(better_path(paths, kOwn, 10, kRate), std::nullopt);
  EXPECT_EQ(better_path(std::vector{path(kOwn, kRate / 4 - 1), paths[1]}, kOwn, 10, kRate), 1u);
}

// It has what it sends, and what is left beside it.
TEST(PathChoice, MovesOnlyForClearlyMoreThanTheFlowHas) {
  const auto offered = [](std::uint64_t left) {
    return better_path(std::vector{path(kOwn, 100), path(kOther, left)}, kOwn, 300, kRate);
  };
  EXPECT_EQ(offered(600), std::nullopt);
  EXPECT_EQ(offered(601), 1u);
}

TEST(PathChoice, AFlowThatHasItsPathAloneStays) {
  for (std::uint64_t sent = 700; sent <= kRate; sent += 100) {
    const std::vector<PathNews> paths = {path(kOwn, kRate - sent), path(kOther, kRate)};
    EXPECT_EQ(better_path(paths, kOwn, sent, kRate), std::nullopt) << sent;
  }
}

TEST(PathChoice, ALongerPathMustBeWorthItsLinks) {
  const auto offered = [](std::uint64_t sent) {
    return better_path(std::vector{path(kOwn, 0), path(kLonger, 1000)}, kOwn, sent, kRate);
  };
  EXPECT_EQ(offered(334), std::nullopt);
  EXPECT_EQ(offered(333), 1u);
  // And from the longer one the shorter one is worth more.
  EXPECT_EQ(better_path(std::vector{path(kLonger, 0), path(kOwn, 1000)}, kLonger, 900, kRate), 1u);
}

TEST(PathChoice, KnowsNothingOfPathsThatDoNotAnswer) {
  for (const State state : {State::silent, State::waiting}) {
    EXPECT_EQ(better_path(std::vector{path(kOwn, 0), path(kOther, 1000, state)}, kOwn, 1, kRate),
              std::nullopt);
    EXPECT_EQ(better_path(std::vector{path(kOwn, 0, state), path(kOther, 1000)}, kOwn, 1, kRate),
              std::nullopt);
  }
  EXPECT_EQ(better_path(std::vector{path(kOther, 1000)}, kOwn, 1, kRate), std::nullopt);
  EXPECT_EQ(better_path({}, kOwn, 1, kRate), std::nullopt);
}

// Whatever a hostile relay writes, no more is believed than a link can carry.
TEST(PathChoice, BelievesNoMoreThanTheRate) {
  const std::vector<PathNews> paths = {path(kOwn, 0), path(kOther, UINT64_MAX)};
  EXPECT_EQ(better_path(paths, kOwn, 700, kRate), std::nullopt);
  EXPECT_EQ(better_path(paths, kOwn, 600, kRate), 1u);
}

}  // namespace
}  // namespace gradcube::bcube
