#include <fmt/format.h>
#include <gtest/gtest.h>
#include <vector>

#include "control/jobs/greetings.h"
#include "control/jobs/wait_cause.h"

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

using Servers = Greetings::Servers;

// Of servers that are not greeted: what is reported at a time.
Servers silent_at(Greetings& greetings, Instant now) {
  std::vector<NodeMessage> messages;
  Servers silent;
  greetings.on_time(now, messages, silent);
  return silent;
}

const GreetingTiming kTiming{milliseconds(10), milliseconds(100)};

TEST(Liveness, ReportsAServerWheneverNothingIsHeardForTheLivenessTime) {
  Greetings greetings(0, 1, kTiming);
  greetings.set_peers({}, {3, 4}, milliseconds(0));
  greetings.on_sign_of_life(4, milliseconds(50));
  EXPECT_EQ(greetings.deadline(), milliseconds(100));
  EXPECT_EQ(silent_at(greetings, milliseconds(99)), Servers());
  EXPECT_EQ(silent_at(greetings, milliseconds(100)), Servers{3});
  EXPECT_EQ(silent_at(greetings, milliseconds(120)), Servers());
  EXPECT_EQ(silent_at(greetings, milliseconds(150)), Servers{4});
  EXPECT_EQ(greetings.deadline(), milliseconds(200));
  EXPECT_EQ(silent_at(greetings, milliseconds(200)), Servers{3}) << "still";
}

TEST(Liveness, ReportsAServerAgainThatCameBackInBetween) {
  Greetings greetings(0, 1, kTiming);
  greetings.set_peers({}, {3}, milliseconds(0));
  EXPECT_EQ(silent_at(greetings, milliseconds(100)), Servers{3});
  greetings.on_sign_of_life(3, milliseconds(110));
  EXPECT_EQ(silent_at(greetings, milliseconds(209)), Servers());
  EXPECT_EQ(silent_at(greetings, milliseconds(210)), Servers{3});
}

TEST(Liveness, KeepsTheTimeOfAServerThatIsWatchedTwiceAndForgetsOne) {
  Greetings greetings(0, 1, kTiming);
  greetings.set_peers({}, {3}, milliseconds(0));
  greetings.set_peers({}, {3}, milliseconds(90));
  EXPECT_EQ(silent_at(greetings, milliseconds(100)), Servers{3});
  greetings.set_peers({}, {}, milliseconds(105));
  greetings.on_sign_of_life(3, milliseconds(110));
  EXPECT_FALSE(greetings.deadline());
}

const bcube::AddressSpace kLivenessSpace(std::vector<unsigned>{3});

// Of a trainer on a server that is heard, with this many submitted and completed.
PeerFacts peer(ServerId server, std::uint64_t published, std::uint64_t completed) {
  const MemberStanding standing{
      server, 70 + static_cast<std::int32_t>(server), true, {published}, {completed}};
  return {standing, milliseconds(10), 0, 100, false};
}

std::string explain(const std::vector<PeerFacts>& peers, std::size_t lanes = 1,
                    const PortsSay& ports_say = {}) {
  return explain_wait("mnist", lanes, peers, {0, 7}, milliseconds(500), kLivenessSpace, 1,
                      ports_say);
}

TEST(WaitCause, NamesTheTrainersThatHaveNotSubmittedIt) {
  EXPECT_EQ(explain({peer(0, 6, 6), peer(1, 7, 6), peer(2, 5, 5)}),
            "collective 7 of job \"mnist\" waits for trainers that have not submitted it: [0] (pid "
            "70), [2] (pid 72)");
}

TEST(WaitCause, TellsWhereItIsUnderWayOrThatItHasEnded) {
  EXPECT_EQ(explain({peer(0, 7, 7), peer(1, 7, 6), peer(2, 8, 6)}, 2),
            "all 3 trainers have submitted collective 7 of lane 0 of job \"mnist\"; it is under "
            "way at [1] [2]");
  EXPECT_EQ(explain({peer(0, 7, 7), peer(1, 9, 8)}),
            "collective 7 of job \"mnist\" has just ended");
}

TEST(WaitCause, NamesASilentDaemonFirstThenTrainersThenLinks) {
  PeerFacts lossy = peer(1, 7, 6);
  lossy.resent = 50;
  EXPECT_EQ(
      explain({peer(0, 7, 6), lossy}),
      "collective 7 of job \"mnist\" waits: the link to server [1] loses segments: 50 resent, "
      "100 acknowledged since the wait began");
  EXPECT_NE(explain({peer(0, 6, 6), lossy}).find("have not submitted it: [0]"), std::string::npos);
  PeerFacts cut_off = peer(2, 7, 6);
  cut_off.no_way = true;
  EXPECT_EQ(explain({peer(0, 7, 6), lossy, cut_off}),
            "collective 7 of job \"mnist\" waits: links are down, and no other way leads to [2]");
  EXPECT_NE(explain({peer(0, 6, 6), cut_off}).find("have not submitted it: [0]"),
            std::string::npos);
  PeerFacts silent = peer(2, 6, 6);
  silent.since_heard = milliseconds(1200);
  EXPECT_EQ(explain({peer(0, 6, 6), lossy, silent}),
            "collective 7 of job \"mnist\" waits: nothing is heard of the daemon on server [2] for "
            "1200 ms");
  silent.no_way = true;
  EXPECT_EQ(explain({peer(0, 6, 6), lossy, silent}),
            "collective 7 of job \"mnist\" waits: nothing is heard of the daemon on server [2] for "
            "1200 ms: links are down, and no other way leads there");
  silent.since_heard = milliseconds(10);
  silent.standing.answered = false;
  EXPECT_EQ(explain({peer(0, 6, 6), lossy, silent}),
            "collective 7 of job \"mnist\" waits: the daemon on server [2] has not answered in "
            "time");
}

TEST(WaitCause, NamesTheServersThatAreCutOffFromWhicheverServerItIsSeen) {
  PeerFacts cut_off = peer(2, 7, 6);
  cut_off.cut_off = true;
  const auto ports_say = [](ServerId server) {
    return fmt::format("port 0 of server [{}] hears itself", server);
  };
  const std::string named =
      "collective 7 of job \"mnist\" waits: links are down, and no other way leads to [2]; port 0 "
      "of "
      "server [2] hears itself";
  EXPECT_EQ(explain({peer(0, 7, 6), peer(1, 7, 6), cut_off}, 1, ports_say), named)
      << "by way of a relay";
  PeerFacts zero = peer(0, 7, 6);
  PeerFacts one = peer(1, 7, 6);
  zero.no_way = one.no_way = true;
  EXPECT_EQ(explain({zero, one, cut_off}, 1, ports_say), named) << "by itself";
}

TEST(WaitCause, NamesTheOtherEndWhereBothEndsOfALinkAreCutOff) {
  PeerFacts self = peer(0, 7, 6);
  PeerFacts other = peer(1, 7, 6);
  self.cut_off = other.cut_off = other.no_way = true;
  EXPECT_EQ(explain({self, other}),
            "collective 7 of job \"mnist\" waits: links are down, and no other way leads to [1]");
}

TEST(WaitCause, TakesAFewResendsForNoLoss) {
  PeerFacts one = peer(0, 7, 6);
  one.resent = 3;
  one.acknowledged = 5;
  EXPECT_EQ(explain({one}),
            "all 1 trainers have submitted collective 7 of job \"mnist\"; it is under way at [0]");
}

}  // namespace
}  // namespace gradcube::control
