#include "control/jobs/greetings.h"

#include <gtest/gtest.h>
#include <vector>

namespace gradcube::control {
namespace {

using bcube::ServerId;
using std::chrono::milliseconds;

using Servers = Greetings::Servers;

struct Said {
  std::vector<NodeMessage> messages;
  Servers silent;
};

Said on_time(Greetings& greetings, Instant now) {
  Said said;
  greetings.on_time(now, said.messages, said.silent);
  return said;
}

bool hears(const NodeMessage& message) { return std::get<Greeting>(message.body).hears_you; }

class GreetingsTest : public testing::Test {
 protected:
  GreetingTiming timing_;
  Greetings greetings_{0, 5, timing_};
};

TEST_F(GreetingsTest, GreetsAtOnceAndThenFromTimeToTime) {
  EXPECT_FALSE(greetings_.deadline());
  greetings_.set_peers({1, 2}, {}, milliseconds(70));
  EXPECT_EQ(greetings_.deadline(), milliseconds(70));
  const Said said = on_time(greetings_, milliseconds(70));
  ASSERT_EQ(said.messages.size(), 2u);
  EXPECT_EQ(said.messages[1].to, 2u);
  EXPECT_EQ(std::get<Greeting>(said.messages[1].body), (Greeting{5, false}));
  EXPECT_TRUE(on_time(greetings_, milliseconds(169)).messages.empty());
  EXPECT_EQ(on_time(greetings_, milliseconds(170)).messages.size(), 2u);
}

TEST_F(GreetingsTest, SaysWhetherItHearsTheOther) {
  greetings_.set_peers({1}, {}, {});
  greetings_.on_greeting(1, {7, false}, milliseconds(10));
  EXPECT_TRUE(hears(on_time(greetings_, milliseconds(20)).messages.at(0))) << "deaf, but heard";
  EXPECT_FALSE(hears(on_time(greetings_, milliseconds(1010)).messages.at(0)));
  greetings_.on_sign_of_life(1, milliseconds(1020));
  EXPECT_EQ(greetings_.last_heard(1), milliseconds(1020));
  EXPECT_TRUE(hears(on_time(greetings_, milliseconds(1210)).messages.at(0)));
}

TEST_F(GreetingsTest, FindsOnlyWatchedServersSilent) {
  greetings_.set_peers({1, 2}, {2}, {});
  EXPECT_TRUE(on_time(greetings_, milliseconds(999)).silent.empty());
  EXPECT_EQ(on_time(greetings_, milliseconds(1000)).silent, Servers{2});
  EXPECT_TRUE(on_time(greetings_, milliseconds(1001)).silent.empty()) << "not at once";
}

TEST_F(GreetingsTest, GivesANewPeerItsTime) {
  greetings_.set_peers({1}, {1}, {});
  greetings_.on_greeting(1, {7, true}, milliseconds(10));
  greetings_.set_peers({}, {}, milliseconds(20));
  greetings_.set_peers({1}, {1}, milliseconds(5000));
  EXPECT_TRUE(on_time(greetings_, milliseconds(5999)).silent.empty());
  EXPECT_EQ(on_time(greetings_, milliseconds(6000)).silent, Servers{1});
}

TEST_F(GreetingsTest, GivesARestartedPeerItsTime) {
  greetings_.set_peers({1}, {1}, {});
  greetings_.on_greeting(1, {7, true}, milliseconds(10));
  greetings_.on_greeting(1, {3, false}, milliseconds(900));
  EXPECT_TRUE(on_time(greetings_, milliseconds(1899)).silent.empty());
  EXPECT_EQ(on_time(greetings_, milliseconds(1900)).silent, Servers{1});
}

TEST_F(GreetingsTest, TakesNothingFromADeafServerForASignOfLife) {
  greetings_.set_peers({1}, {1}, {});
  greetings_.on_greeting(1, {7, true}, {});
  greetings_.on_greeting(1, {7, false}, milliseconds(500));
  greetings_.on_sign_of_life(1, milliseconds(600));
  EXPECT_EQ(on_time(greetings_, milliseconds(1000)).silent, Servers{1});
  greetings_.on_greeting(1, {7, true}, milliseconds(1100));
  EXPECT_EQ(on_time(greetings_, milliseconds(2100)).silent, Servers{1}) << "it was back";
}

// Server 1 hears nothing of server 0 from `cut` on; server 0 hears all.
TEST(Greetings, BothSidesOfALinkThatBreaksOneWayFindOut) {
  const GreetingTiming timing;
  const Instant cut = milliseconds(3300);
  Greetings zero(0, 5, timing);
  Greetings one(1, 7, timing);
  zero.set_peers({1}, {1}, {});
  one.set_peers({0}, {0}, {});
  std::optional<Instant> zero_knows;
  std::optional<Instant> one_knows;
  for (Instant now{}; now < milliseconds(10000); now += milliseconds(10)) {
    const Said of_zero = on_time(zero, now);
    const Said of_one = on_time(one, now);
    for (const NodeMessage& message : of_zero.messages) {
      if (now < cut) one.on_greeting(0, std::get<Greeting>(message.body), now);
    }
    for (const NodeMessage& message : of_one.messages) {
      zero.on_greeting(1, std::get<Greeting>(message.body), now);
    }
    zero.on_sign_of_life(1, now);  // it goes on sending its data
    if (!of_zero.silent.empty() && !zero_knows.has_value()) zero_knows = now;
    if (!of_one.silent.empty() && !one_knows.has_value()) one_knows = now;
  }
  ASSERT_TRUE(zero_knows && one_knows);
  EXPECT_GT(*one_knows, cut);
  EXPECT_LE(*one_knows, cut + timing.silent_after);
  EXPECT_LE(*zero_knows, cut + 2 * timing.silent_after);
}

}  // namespace
}  // namespace gradcube::control
