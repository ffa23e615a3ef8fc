#include "dataplane/daemon/process/turns.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradcube::dataplane {
namespace {

std::vector<int> all_of(Turns& turns) {
  std::vector<int> taken;
  while (!turns.empty()) taken.push_back(turns.take());
  return taken;
}

TEST(Turns, GoRoundTheUsersHoweverManyThingsOfOneWait) {
  Turns turns;
  for (int what = 0; what < 5; ++what) turns.add(7, what);
  turns.add(9, 10);
  turns.add(8, 20);
  turns.add(9, 11);
  EXPECT_EQ(all_of(turns), (std::vector<int>{0, 20, 10, 1, 11, 2, 3, 4}));
}

TEST(Turns, AreNotOfWhatHasGone) {
  Turns turns;
  turns.add(7, 1);
  turns.add(7, 2);
  turns.remove(7, 1);
  turns.remove(7, 1);
  turns.remove(8, 2);
  EXPECT_EQ(all_of(turns), std::vector<int>{2});
}

TEST(Turns, BeginWithTheNextUserWhenTheLastComesAgain) {
  Turns turns;
  turns.add(7, 1);
  turns.add(8, 2);
  EXPECT_EQ(turns.take(), 1);
  turns.add(7, 3);
  EXPECT_EQ(turns.take(), 2);
  EXPECT_EQ(turns.take(), 3);
}

}  // namespace
}  // namespace gradcube::dataplane
