#include "control/base/fair_share.h"

#include <gtest/gtest.h>
#include <numeric>
#include <vector>

namespace gradcube::control {
namespace {

constexpr FairShare kDivided{true};

TEST(FairShare, GivesAllToOneUserWhereNothingIsDivided) {
  EXPECT_TRUE(FairShare{}.allows(64, 63, 63));
  EXPECT_FALSE(FairShare{}.allows(64, 64, 64));
  EXPECT_EQ(FairShare{}.most(64), 64u);
}

TEST(FairShare, GivesHalfToOneUserWhereOthersMayCome) {
  EXPECT_TRUE(kDivided.allows(64, 31, 31));
  EXPECT_FALSE(kDivided.allows(64, 32, 32));
  EXPECT_TRUE(kDivided.allows(64, 32, 0)) << "who comes next";
  EXPECT_EQ(kDivided.most(64), 32u);
}

TEST(FairShare, LeavesAPlaceForWhoComesLaterHoweverManyHaveTakenWhatTheyCan) {
  for (unsigned users = 1; users <= 5; ++users) {
    std::vector<unsigned> own(users);
    for (bool any = true; any;) {
      any = false;
      for (unsigned& each : own) {
        if (!kDivided.allows(64, std::accumulate(own.begin(), own.end(), 0u), each)) continue;
        ++each;
        any = true;
      }
    }
    const unsigned taken = std::accumulate(own.begin(), own.end(), 0u);
    EXPECT_TRUE(kDivided.allows(64, taken, 0)) << users;
    for (const unsigned each : own) EXPECT_GE(each, 64 / (users + 1)) << users;
  }
}

TEST(FairShare, CountsWhatIsTakenAtOnce) {
  EXPECT_TRUE(kDivided.allows(64, 0, 0, 32));
  EXPECT_FALSE(kDivided.allows(64, 0, 0, 33));
  EXPECT_FALSE(kDivided.allows(64, 10, 0, 60));
  EXPECT_FALSE(kDivided.allows(64, 70, 0)) << "more than there are";
}

}  // namespace
}  // namespace gradcube::control
