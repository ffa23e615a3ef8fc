#include "control/jobs/replay_window.h"

#include <gtest/gtest.h>
#include <random>
#include <set>

namespace gradcube::control {
namespace {

TEST(ReplayWindow, TakesEachNumberOnce) {
  ReplayWindow window;
  for (const std::uint64_t number : {1U, 3U, 2U, 10U, 5U}) {
    EXPECT_TRUE(window.take(number)) << number;
    EXPECT_FALSE(window.take(number)) << number;
  }
  EXPECT_FALSE(window.take(0)) << "there is no such number";
}

TEST(ReplayWindow, TellsWhatHasComeAndTakesNothingByThat) {
  ReplayWindow window(5);
  EXPECT_TRUE(window.take(ReplayWindow::kRemembered + 5));
  EXPECT_TRUE(window.has_come(5)) << "too old to be known";
  EXPECT_FALSE(window.has_come(6));
  EXPECT_TRUE(window.take(6));
  EXPECT_TRUE(window.has_come(6));
  EXPECT_TRUE(window.has_come(ReplayWindow::kRemembered + 5));
  EXPECT_FALSE(window.has_come(ReplayWindow::kRemembered + 6));
}

TEST(ReplayWindow, CountsAllUpToItsBeginAsCome) {
  ReplayWindow window(100);
  for (std::uint64_t number = 0; number <= 100; ++number) EXPECT_FALSE(window.take(number));
  EXPECT_TRUE(window.take(101));
}

TEST(ReplayWindow, RefusesWhatItCannotRemember) {
  ReplayWindow window;
  EXPECT_TRUE(window.take(ReplayWindow::kRemembered + 5));
  EXPECT_FALSE(window.take(5));
  EXPECT_TRUE(window.take(6));
  EXPECT_TRUE(window.take(UINT64_MAX));
  EXPECT_FALSE(window.take(UINT64_MAX));
  EXPECT_FALSE(window.take(ReplayWindow::kRemembered + 6));
  EXPECT_TRUE(window.take(UINT64_MAX - 1));
}

TEST(ReplayWindow, TakesWhatComesOutOfOrderAndNothingTwice) {
  std::mt19937_64 random(7);
  ReplayWindow window;
  std::set<std::uint64_t> taken;
  std::uint64_t newest = 0;
  for (unsigned i = 0; i < 50'000; ++i) {
    const std::uint64_t number =
        1 + newest - std::min<std::uint64_t>(newest, random() % 1200) + random() % 600;
    const bool is_new = taken.count(number) == 0;
    const bool is_old = number + ReplayWindow::kRemembered <= newest;
    ASSERT_EQ(window.take(number), is_new && !is_old) << number << " behind " << newest;
    if (!is_old) taken.insert(number);
    newest = std::max(newest, number);
  }
}

}  // namespace
}  // namespace gradcube::control
