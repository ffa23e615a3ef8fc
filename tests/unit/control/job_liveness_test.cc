#include <gtest/gtest.h>
#include <vector>

#include "control/jobs/liveness.h"
#include "control/jobs/wait_cause.h"

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

TEST(Liveness, ReportsAServerOnceWhenNothingIsHeardForTheLivenessTime) {
  Liveness liveness{milliseconds(100)};
  liveness.watch(3, milliseconds(0));
  liveness.watch(4, milliseconds(0));
  liveness.on_heard(4, milliseconds(50));
  EXPECT_EQ(liveness.deadline(), milliseconds(100));
  EXPECT_TRUE(liveness.take_silent(milliseconds(99)).empty());
  EXPECT_EQ(liveness.take_silent(milliseconds(100)), std::vector<ServerId>{3});
  EXPECT_TRUE(liveness.take_silent(milliseconds(120)).empty());
  EXPECT_EQ(liveness.take_silent(milliseconds(150)), std::vector<ServerId>{4});
  EXPECT_FALSE(liveness.deadline());
}

TEST(Liveness, ReportsAServerAgainThatCameBackInBetween) {
  Liveness liveness{milliseconds(100)};
  liveness.watch(3, milliseconds(0));
  EXPECT_EQ(liveness.take_silent(milliseconds(100)).size(), 1u);
  liveness.on_heard(3, milliseconds(110));
  EXPECT_EQ(liveness.last_heard(3), milliseconds(110));
  EXPECT_EQ(liveness.take_silent(milliseconds(210)).size(), 1u);
}

TEST(Liveness, KeepsTheTimeOfAServerThatIsWatchedTwiceAndForgetsOne) {
  Liveness liveness{milliseconds(100)};
  liveness.watch(3, milliseconds(0));
  liveness.watch(3, milliseconds(90));
  EXPECT_EQ(liveness.take_silent(milliseconds(100)).size(), 1u);
  liveness.forget(3);
  liveness.on_heard(3, milliseconds(110));
  EXPECT_FALSE(liveness.last_heard(3));
}

const bcube::AddressSpace kSpace(std::vector<unsigned>{3});

TEST(WaitCause, TellsASilentDaemonFromALossyLinkFromAnIdleTrainer) {
  const auto explain = [](const std::vector<PeerFacts>& peers) {
    return explain_wait(peers, 7, milliseconds(500), kSpace);
  };
  const PeerFacts idle{0, milliseconds(10), 0, 100, 6};
  const PeerFacts lossy{1, milliseconds(10), 50, 100, 7};
  const PeerFacts silent{2, milliseconds(900), 50, 0, 6};
  EXPECT_EQ(explain({idle}), "the trainer on server [0] has not called collective 7 yet");
  EXPECT_EQ(explain({idle, lossy}),
            "the link to server [1] loses segments: 50 resent, 100 acknowledged since the wait "
            "began");
  EXPECT_EQ(explain({idle, lossy, silent}),
            "nothing is heard of the daemon on server [2] for 900 ms");
  EXPECT_EQ(explain({}), "all trainers have called collective 7; it is under way");
}

TEST(WaitCause, TakesAFewResendsForNoLoss) {
  EXPECT_EQ(explain_wait({{1, milliseconds(1), 3, 5, 7}}, 7, milliseconds(500), kSpace),
            "all trainers have called collective 7; it is under way");
}

}  // namespace
}  // namespace gradcube::control
