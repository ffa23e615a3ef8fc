// Greetings that are padded to the longest frame: what one end of a link makes of arrived and of
// missing ones, and two servers' keepers over a link that drops long frames. The servers are [0,0]
// and [2,0] of bcube:3,2, over their link at level 1.

#include "dataplane/links/full_frames.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <vector>

#include "dataplane/links/link_keeper.h"
#include "protocol/link_frame.h"

namespace gradcube::dataplane {
namespace {

constexpr std::uint64_t kOlder = 20;

class FullFramesTest : public testing::Test {
 protected:
  // Greetings of the neighbour in its next interval, in which it has sent a padded one.
  void hear_short() { hear(++number_, false, {.sent = true}); }
  bool hear_padded() { return hear(++number_, true, {.sent = true}); }
  bool hear(std::uint64_t number, bool padded, const protocol::FullFrameNews& news) {
    protocol::LinkHeader greeting;
    greeting.number = number;
    greeting.full_frames = news;
    return full_.take(greeting, padded, kOlder);
  }

  FullFrames full_;
  std::uint64_t number_ = 5'000;
};

TEST_F(FullFramesTest, AreTakenToPassUntilSomeWereMissed) {
  for (unsigned i = 0; i < FullFrames::kMissed; ++i) {
    EXPECT_TRUE(full_.carried());
    hear_short();
  }
  EXPECT_FALSE(full_.carried());
  EXPECT_TRUE(full_.lost_from());
  EXPECT_EQ(full_.news(1), (protocol::FullFrameNews{false, true, true, true}));
}

TEST_F(FullFramesTest, PassAgainOnceOneHasCome) {
  for (unsigned i = 0; i < 2 * FullFrames::kMissed; ++i) hear_short();
  EXPECT_TRUE(hear_padded()) << "the neighbour is to know at once";
  EXPECT_TRUE(full_.carried());
  EXPECT_FALSE(full_.lost_from());
  EXPECT_EQ(full_.news(1), protocol::FullFrameNews{});
  EXPECT_FALSE(hear_padded()) << "nothing new";
}

TEST_F(FullFramesTest, ThatAreLostNowAndThenAreAskedForAndPass) {
  hear_padded();
  for (unsigned i = 0; i < 10; ++i) {
    for (unsigned missed = 1; missed < FullFrames::kMissed; ++missed) hear_short();
    EXPECT_TRUE(full_.news(1).wanted);
    EXPECT_TRUE(full_.carried());
    hear_padded();
  }
}

TEST_F(FullFramesTest, ThatNobodyHasSentAreNotMissed) {
  hear_padded();
  for (unsigned i = 0; i < 100; ++i) hear(++number_, false, {});
  EXPECT_TRUE(full_.carried());
  EXPECT_FALSE(full_.news(1).wanted);
}

TEST_F(FullFramesTest, AreMissedOnceForEachIntervalHoweverManyGreetingsTellOfThem) {
  for (unsigned i = 0; i < 2 * FullFrames::kMissed; ++i) hear(number_, false, {.sent = true});
  EXPECT_TRUE(full_.carried());
}

TEST_F(FullFramesTest, AreNotMissedForWhatSomebodyHasRecorded) {
  for (unsigned i = 0; i < 5; ++i) hear_padded();
  for (unsigned i = 1; i < 5; ++i) {
    hear(number_ - i, false, {.sent = true, .unproven = true, .lost = true});
  }
  EXPECT_TRUE(full_.carried());
  EXPECT_FALSE(full_.lost_to());
}

TEST_F(FullFramesTest, AreLearnedAnewOfANeighbourThatWasStartedAnew) {
  for (unsigned i = 0; i < 5; ++i) hear_padded();
  number_ = 17;
  for (unsigned i = 0; i < FullFrames::kMissed; ++i) hear_short();
  EXPECT_FALSE(full_.carried());
}

TEST_F(FullFramesTest, DoNotPassWhileTheNeighbourSaysThatNoneComes) {
  hear(++number_, true, {.sent = true, .wanted = true, .unproven = true, .lost = true});
  EXPECT_FALSE(full_.carried());
  EXPECT_TRUE(full_.lost_to());
  EXPECT_FALSE(full_.lost_from());
  EXPECT_TRUE(full_.wanted());
  hear(++number_, false, {});
  EXPECT_TRUE(full_.carried());
}

TEST_F(FullFramesTest, AreNotTakenForGrantedOnceTheLinkWasDown) {
  hear_padded();
  full_.on_down();
  EXPECT_FALSE(full_.carried());
  EXPECT_FALSE(full_.lost_from()) << "none was missed";
  EXPECT_EQ(full_.news(1), (protocol::FullFrameNews{false, true, true, false}));
  hear_padded();
  EXPECT_TRUE(full_.carried());
}

constexpr protocol::Nanoseconds kBetween = protocol::kMillisecond;
constexpr std::uint32_t kFullLength = 1514;

// Two servers whose greetings pass the link as far as the link lets them.
class TwoKeepers : public testing::Test {
 protected:
  struct End {
    End(const bcube::AddressSpace& space, bcube::ServerId self, std::uint64_t first_number)
        : server(self),
          neighbours(space, self),
          links(space),
          keeper({.interval = kBetween, .first_number = first_number, .padded_bytes = kFullLength},
                 neighbours, links) {}

    bcube::ServerId server;
    bcube::NeighbourTable neighbours;
    ServerLinks links;
    LinkKeeper keeper;
  };

  // What the sender owes the receiver; it counts the padded ones.
  void deliver(End& from, End& to, bool passes, std::uint32_t longest) {
    while (from.keeper.owes(1)) {
      std::array<std::uint8_t, protocol::kMaxHeaderBytes> headers{};
      const GreetingBytes written = from.keeper.write_owed(1, headers);
      const std::size_t length = written.headers + written.padding;
      protocol::ParsedFrame frame;
      ASSERT_EQ(protocol::parse_frame(headers, length, frame), protocol::FrameError::none);
      EXPECT_TRUE(written.padding == 0 || length == kFullLength);
      if (frame.routing.destination != to.server) continue;
      if (written.padding != 0) ++padded_;
      if (passes && length <= longest) to.keeper.take(frame, 1, now_);
    }
  }
  void pass_intervals(unsigned count) {
    for (unsigned i = 0; i < count; ++i) {
      now_ += kBetween;
      for (End* end : {&one_, &other_}) end->keeper.keep(now_);
      for (unsigned exchanges = 0; exchanges < 4; ++exchanges) {
        deliver(one_, other_, passes_, there_);
        deliver(other_, one_, passes_, back_);
      }
    }
  }
  bool up() const {
    const bool is = one_.links.up(kLink);
    EXPECT_EQ(other_.links.up(kBack), is) << "both ends say the same";
    return is;
  }
  std::vector<LossyLength> of_one() const { return one_.keeper.lossy_lengths(1); }
  std::vector<LossyLength> of_other() const { return other_.keeper.lossy_lengths(1); }

  static constexpr bcube::Hop kLink{1, 2};
  static constexpr bcube::Hop kBack{1, 0};
  // Until both ends have missed some, and have heard nothing that counts.
  static constexpr unsigned kFound = FullFrames::kMissed + bcube::LinkWatch::kSilentIntervals + 2;
  static constexpr unsigned kLater = LinkKeeper::kPaddedEvery + kFound;

  bcube::AddressSpace space_{std::vector<unsigned>{3, 3}};
  End one_{space_, 0, 1};
  End other_{space_, 6, 5'000};
  protocol::Nanoseconds now_ = 0;
  bool passes_ = true;
  std::uint32_t there_ = kFullLength;  // that passes from one to the other
  std::uint32_t back_ = kFullLength;
  unsigned padded_ = 0;
};

TEST_F(TwoKeepers, NeedFewPaddedGreetingsWhereAllPass) {
  pass_intervals(2);
  EXPECT_TRUE(up());
  EXPECT_EQ(padded_, 2u) << "one each";
  pass_intervals(10 * LinkKeeper::kPaddedEvery);
  EXPECT_TRUE(up());
  EXPECT_LE(padded_, 2u + 2 * 10);
  EXPECT_THAT(of_one(), testing::IsEmpty());
}

TEST_F(TwoKeepers, TakeALinkDownThatNeverCarriesFullFrames) {
  there_ = back_ = kFullLength - 1;
  pass_intervals(kFound);
  EXPECT_FALSE(up());
  EXPECT_FALSE(one_.links.heard(kLink));
  EXPECT_THAT(of_one(), testing::ElementsAre(LossyLength{6, true, true}));
  EXPECT_THAT(of_other(), testing::ElementsAre(LossyLength{0, true, true}));
  pass_intervals(100);
  EXPECT_FALSE(up());
}

TEST_F(TwoKeepers, TakeALinkDownThatCarriesThemNoLongerAndUseItAgainOnceItDoes) {
  pass_intervals(5);
  there_ = back_ = kFullLength - 1;
  pass_intervals(kLater);
  EXPECT_FALSE(up());
  there_ = back_ = kFullLength;
  pass_intervals(bcube::LinkWatch::kMostCalm);
  EXPECT_TRUE(up());
  EXPECT_THAT(of_one(), testing::IsEmpty());
  EXPECT_THAT(of_other(), testing::IsEmpty());
}

TEST_F(TwoKeepers, TakeALinkDownAtBothEndsThatLosesThemOneWay) {
  there_ = 100;
  pass_intervals(kFound);
  EXPECT_FALSE(up());
  EXPECT_THAT(of_one(), testing::ElementsAre(LossyLength{6, false, true}));
  EXPECT_THAT(of_other(), testing::ElementsAre(LossyLength{0, true, false}));
  there_ = kFullLength;
  pass_intervals(bcube::LinkWatch::kMostCalm);
  EXPECT_TRUE(up());
}

TEST_F(TwoKeepers, DoNotUseALinkThatComesBackWithShorterFrames) {
  pass_intervals(5);
  passes_ = false;
  pass_intervals(2 * LinkKeeper::kFreshIntervals);
  EXPECT_FALSE(up());
  EXPECT_THAT(of_one(), testing::IsEmpty()) << "nothing is heard";
  passes_ = true;
  there_ = back_ = kFullLength - 1;
  for (unsigned i = 0; i < 100; ++i) {
    pass_intervals(1);
    ASSERT_FALSE(up()) << i;
  }
  EXPECT_THAT(of_one(), testing::ElementsAre(LossyLength{6, true, true}));
}

TEST_F(TwoKeepers, UseALinkAsSoonAsBeforeThatComesBackWithFullOnes) {
  pass_intervals(5);
  passes_ = false;
  pass_intervals(2 * LinkKeeper::kFreshIntervals);
  passes_ = true;
  pass_intervals(bcube::LinkWatch::kCalm * 2 + 1);
  EXPECT_TRUE(up());
}

TEST_F(TwoKeepers, TakeNoFrameOfTheLinkForASignOfLifeWhileFullOnesDoNotPass) {
  there_ = back_ = 100;
  NeighbourRows rows;
  for (unsigned level = 0; level < 2; ++level) rows.emplace_back(3);
  one_.links.add(rows);
  other_.links.add(rows);
  for (unsigned i = 0; i < kFound; ++i) {
    rows[1][0].direct.add(1);
    rows[1][2].direct.add(1);
    pass_intervals(1);
  }
  EXPECT_FALSE(up());
}

TEST_F(TwoKeepers, RefuseWhatIsPaddedToAnotherLength) {
  pass_intervals(2);
  protocol::ParsedFrame frame;
  frame.type = protocol::FrameType::greeting;
  frame.routing.source = 6;
  frame.link = {6, 1, 0, 1, 2};
  frame.header_bytes = protocol::header_bytes(protocol::FrameType::greeting, 1);
  for (const std::size_t length :
       {frame.header_bytes + 1, std::size_t{kFullLength} - 1, std::size_t{kFullLength} + 1}) {
    frame.payload_bytes = length - frame.header_bytes;
    EXPECT_EQ(one_.keeper.take(frame, 1, now_), GreetingVerdict::wrong_length) << length;
  }
  frame.payload_bytes = kFullLength - frame.header_bytes;
  frame.routing.destination = 6;
  EXPECT_EQ(one_.keeper.take(frame, 1, now_), GreetingVerdict::wrong_length) << "it is to all";
}

// A port of server 0 with some neighbours, whom it hears in every interval.
class SlowPort {
 public:
  SlowPort(unsigned servers, unsigned sixteenths)
      : space_(std::vector<unsigned>{servers}),
        neighbours_(space_, 0),
        links_(space_),
        keeper_(
            {.interval = kBetween, .padded_bytes = kFullLength, .padded_sixteenths = sixteenths},
            neighbours_, links_) {}

  // For an interval, in which these ask; returns to whom padded greetings went.
  std::vector<unsigned> pass(const std::set<unsigned>& asking) {
    ++number_;
    for (std::uint16_t from = 1; from < neighbours_.space().servers(); ++from) {
      protocol::ParsedFrame frame;
      frame.type = protocol::FrameType::greeting;
      frame.routing.source = from;
      frame.link = {from, 0, 0, number_, number_};
      frame.link.full_frames.wanted = asking.contains(from);
      keeper_.take(frame, 0, now());
    }
    keeper_.keep(now());
    std::vector<unsigned> padded;
    while (keeper_.owes(0)) {
      std::array<std::uint8_t, protocol::kMaxHeaderBytes> headers{};
      const GreetingBytes written = keeper_.write_owed(0, headers);
      protocol::ParsedFrame frame;
      protocol::parse_frame(headers, written.headers + written.padding, frame);
      if (written.padding != 0) padded.push_back(frame.routing.destination);
    }
    return padded;
  }

 private:
  protocol::Nanoseconds now() const { return number_ * kBetween; }

  const bcube::AddressSpace space_;
  const bcube::NeighbourTable neighbours_;
  ServerLinks links_;
  LinkKeeper keeper_;
  std::uint64_t number_ = 0;
};

TEST(LinkKeeperOnASlowPort, SendsPaddedGreetingsInTurnAndAsManyAsTheyMayBe) {
  SlowPort port(12, 32);
  std::multiset<unsigned> sent;
  for (unsigned i = 1; i <= 22; ++i) {
    const std::vector<unsigned> padded = port.pass({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
    EXPECT_LE(padded.size(), 4u) << "two, and two that were saved up";
    sent.insert(padded.begin(), padded.end());
  }
  for (unsigned to = 1; to < 12; ++to) EXPECT_GE(sent.count(to), 1u) << to;
}

// One always asks, as a neighbour does that never hears one.
TEST(LinkKeeperOnASlowPort, LetsNoNeighbourWaitForOneThatAlwaysAsks) {
  for (const unsigned sixteenths : {1U, 2U, 3U, 8U, 13U, 15U, 16U, 64U}) {
    for (unsigned servers = 3; servers <= 17; ++servers) {
      SlowPort port(servers, sixteenths);
      std::multiset<unsigned> sent;
      for (unsigned i = 0; i < 40 * servers; ++i) {
        const std::vector<unsigned> padded = port.pass({1});
        sent.insert(padded.begin(), padded.end());
      }
      for (unsigned to = 1; to < servers; ++to) {
        EXPECT_GE(sent.count(to), 2u) << to << " of " << servers << ", " << sixteenths;
      }
    }
  }
}

}  // namespace
}  // namespace gradcube::dataplane
