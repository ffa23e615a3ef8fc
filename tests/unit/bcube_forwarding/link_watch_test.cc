#include "bcube_forwarding/link_watch.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradcube::bcube {
namespace {

constexpr unsigned kSilent = LinkWatch::kSilentIntervals;

class LinkWatchTest : public testing::Test {
 protected:
  void greet(unsigned intervals) {
    for (unsigned i = 0; i < intervals; ++i) {
      watch_.on_sign_of_life();
      watch_.end_interval();
    }
  }
  void wait(unsigned intervals) {
    for (unsigned i = 0; i < intervals; ++i) watch_.end_interval();
  }
  // How many greetings in a row bring the link up again.
  unsigned greetings_until_up() {
    unsigned count = 0;
    for (; !watch_.up() && count < 1000; ++count) greet(1);
    return count;
  }

  LinkWatch watch_;
};

TEST_F(LinkWatchTest, TakesALinkToBeUpUntilItHasBeenSilent) {
  wait(kSilent - 1);
  EXPECT_TRUE(watch_.up());
  EXPECT_TRUE(watch_.hears());
  wait(1);
  EXPECT_FALSE(watch_.up());
  EXPECT_FALSE(watch_.hears());
}

TEST_F(LinkWatchTest, NeedsOneSignOfLifeInThreeIntervals) {
  for (unsigned i = 0; i < 10; ++i) {
    wait(kSilent - 1);
    watch_.on_sign_of_life();
    wait(1);
  }
  EXPECT_TRUE(watch_.up());
}

TEST_F(LinkWatchTest, BringsALinkUpAfterASteadyWhile) {
  wait(kSilent);
  greet(LinkWatch::kCalm - 1);
  wait(kSilent);
  EXPECT_FALSE(watch_.up());
  EXPECT_EQ(greetings_until_up(), LinkWatch::kCalm);
}

TEST_F(LinkWatchTest, BringsALinkUpThatLosesEveryOtherGreeting) {
  for (unsigned i = 0; i < 7; ++i) {
    wait(kSilent);
    greetings_until_up();
  }
  wait(kSilent);
  for (unsigned i = 0; i < LinkWatch::kMostCalm; ++i) {
    EXPECT_FALSE(watch_.up());
    wait(1);
    greet(1);
  }
  EXPECT_TRUE(watch_.up());
}

TEST_F(LinkWatchTest, LeavesALinkThatFlapsAlone) {
  std::vector<unsigned> needed;
  for (unsigned i = 0; i < 7; ++i) {
    wait(kSilent);
    needed.push_back(greetings_until_up());
  }
  EXPECT_EQ(needed, (std::vector<unsigned>{3, 6, 12, 24, 48, 48, 48}));
  greet(LinkWatch::kForget);
  wait(kSilent);
  EXPECT_EQ(greetings_until_up(), LinkWatch::kCalm);
}

}  // namespace
}  // namespace gradcube::bcube
