// Greetings without an engine: server [0,0] of bcube:3,2, whose neighbours are 1, 2, 3 and 6.

#include "dataplane/links/link_keeper.h"

#include <array>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <vector>

#include "protocol/link_frame.h"

namespace gradcube::dataplane {
namespace {

constexpr protocol::Nanoseconds kPause = protocol::kMillisecond;

class LinkKeeperTest : public testing::Test {
 protected:
  // The servers greeted through the port.
  std::vector<unsigned> write_owed(unsigned port) {
    std::vector<unsigned> greeted;
    while (keeper_.owes(port)) {
      std::array<std::uint8_t, protocol::kMaxHeaderBytes> bytes{};
      const std::size_t length = keeper_.write_owed(port, bytes).headers;
      protocol::ParsedFrame frame;
      EXPECT_EQ(protocol::parse_frame(bytes, length, frame), protocol::FrameError::none);
      greeted.push_back(frame.routing.destination);
      EXPECT_EQ(frame.link.server, 0);
      EXPECT_EQ(frame.link.level, port);
    }
    return greeted;
  }
  // In the greetings that this neighbour is owed.
  std::vector<std::uint64_t> echoes_to(bcube::ServerId server, unsigned port) {
    std::vector<std::uint64_t> echoes;
    for (const protocol::ParsedFrame& frame : owed_by(keeper_, port)) {
      if (frame.routing.destination == server) echoes.push_back(frame.link.echo);
    }
    return echoes;
  }
  static std::vector<protocol::ParsedFrame> owed_by(LinkKeeper& keeper, unsigned port) {
    std::vector<protocol::ParsedFrame> frames;
    std::array<std::uint8_t, protocol::kMaxHeaderBytes> bytes{};
    while (keeper.owes(port)) {
      const GreetingBytes written = keeper.write_owed(port, bytes);
      const std::size_t length = written.headers + written.padding;
      EXPECT_EQ(protocol::parse_frame(bytes, length, frames.emplace_back()),
                protocol::FrameError::none);
    }
    return frames;
  }
  protocol::ParsedFrame greeting(bcube::ServerId from, std::uint8_t level) const {
    return greeting(from, level, number_);
  }
  static protocol::ParsedFrame greeting(bcube::ServerId from, std::uint8_t level,
                                        std::uint64_t echo, std::uint64_t number = 77) {
    protocol::ParsedFrame frame;
    frame.type = protocol::FrameType::greeting;
    frame.routing.source = static_cast<std::uint16_t>(from);
    frame.link = {frame.routing.source, level, 0, number, echo};
    return frame;
  }
  void pass_intervals(unsigned count) {
    for (unsigned i = 0; i < count; ++i, ++number_) keeper_.keep(now_ += kPause);
  }

  static constexpr std::array<unsigned, 2> kRadices = {3, 3};
  bcube::AddressSpace space_{kRadices};
  bcube::NeighbourTable neighbours_{space_, 0};
  ServerLinks links_{space_};
  LinkKeeper keeper_{{.interval = kPause}, neighbours_, links_};
  protocol::Nanoseconds now_ = 0;
  std::uint64_t number_ = 1;  // of the interval's greetings
};

TEST_F(LinkKeeperTest, OwesEachNeighbourAGreetingOnceInAnInterval) {
  keeper_.keep(0);
  EXPECT_THAT(write_owed(0), testing::ElementsAre(1, 2));
  EXPECT_THAT(write_owed(1), testing::ElementsAre(3, 6));
  keeper_.keep(kPause - 1);
  EXPECT_FALSE(keeper_.owes(0));
  keeper_.keep(kPause);
  EXPECT_THAT(write_owed(1), testing::ElementsAre(3, 6));
}

TEST_F(LinkKeeperTest, PublishesThatALinkIsDownWhereNothingIsHeard) {
  for (unsigned i = 0; i < 2 * bcube::LinkWatch::kSilentIntervals; ++i) {
    EXPECT_EQ(keeper_.take(greeting(6, 1), 1, now_), GreetingVerdict::fits);
    pass_intervals(1);
  }
  EXPECT_TRUE(links_.up({1, 2}));
  EXPECT_FALSE(links_.up({1, 1}));
  EXPECT_FALSE(links_.up({0, 1}));
  EXPECT_EQ(links_.version(), 1u) << "once for all of them";
}

TEST_F(LinkKeeperTest, TakesFramesThatCameOverTheLinkForASignOfLife) {
  NeighbourRows rows;
  for (unsigned level = 0; level < 2; ++level) rows.emplace_back(3);
  links_.add(rows);
  for (unsigned i = 0; i < 2 * bcube::LinkWatch::kSilentIntervals; ++i) {
    rows[0][1].direct.add(1);
    pass_intervals(1);
  }
  EXPECT_TRUE(links_.heard({0, 1}));
  EXPECT_FALSE(links_.heard({0, 2}));
}

TEST_F(LinkKeeperTest, IsNotDeceivedByGreetingsThatDoNotFit) {
  const std::vector<protocol::ParsedFrame> wrong = {greeting(6, 0), greeting(4, 1),
                                                    greeting(6, 200), greeting(0, 1)};
  for (const protocol::ParsedFrame& frame : wrong) {
    EXPECT_EQ(keeper_.take(frame, 1, now_), GreetingVerdict::wrong_link);
  }
  pass_intervals(2 * bcube::LinkWatch::kSilentIntervals);
  EXPECT_FALSE(links_.heard({1, 2}));
}

TEST_F(LinkKeeperTest, TakesWhatSomebodyHasRecordedForNoSignOfLife) {
  const protocol::ParsedFrame recorded = greeting(6, 1);
  ASSERT_EQ(keeper_.take(recorded, 1, now_), GreetingVerdict::fits);
  pass_intervals(LinkKeeper::kFreshIntervals);
  for (unsigned i = 0; i < bcube::LinkWatch::kSilentIntervals + 1; ++i) {
    keeper_.take(recorded, 1, now_);
    pass_intervals(1);
  }
  EXPECT_FALSE(links_.up({1, 2}));
  for (unsigned i = 0; i < bcube::LinkWatch::kMostCalm; ++i) {
    keeper_.take(recorded, 1, now_);
    pass_intervals(1);
  }
  EXPECT_FALSE(links_.up({1, 2})) << "nothing new has come";
}

TEST_F(LinkKeeperTest, AnswersAtOnceAndOnceWhatAnswersNothing) {
  pass_intervals(1);
  write_owed(1);
  for (unsigned i = 0; i < 3; ++i) {
    EXPECT_EQ(keeper_.take(greeting(6, 1, 0, 90), 1, now_), GreetingVerdict::stale);
  }
  keeper_.take(greeting(6, 1, 0, 91), 1, now_);
  EXPECT_THAT(echoes_to(6, 1), testing::UnorderedElementsAre(90, 91));
  EXPECT_EQ(keeper_.take(greeting(6, 1, number_, 92), 1, now_), GreetingVerdict::fits);
  EXPECT_THAT(echoes_to(6, 1), testing::ElementsAre(92)) << "so that it knows this server, too";
  keeper_.take(greeting(6, 1, number_, 93), 1, now_);
  pass_intervals(1);
  write_owed(1);
  keeper_.take(greeting(6, 1, number_, 94), 1, now_);
  EXPECT_FALSE(keeper_.owes(1)) << "they know each other";
}

TEST_F(LinkKeeperTest, AnswersNoMoreThanItHasPlacesFor) {
  for (std::uint64_t number = 1; number <= 1'000; ++number) {
    keeper_.take(greeting(6, 1, 0, number), 1, now_);
  }
  EXPECT_EQ(echoes_to(6, 1).size(), LinkKeeper::kMostAnswers);
}

TEST_F(LinkKeeperTest, SuspectsNoNeighbourThatBeginsALittleLater) {
  pass_intervals(2);
  write_owed(1);
  keeper_.take(greeting(6, 1, 0), 1, now_);
  EXPECT_THAT(write_owed(1), testing::ElementsAre(6));
  keeper_.take(greeting(6, 1), 1, now_);
  pass_intervals(1);
  EXPECT_TRUE(links_.up({1, 2}));
}

TEST_F(LinkKeeperTest, IsNotMisledByWhatSomebodyHasRecordedWhileTheNeighbourGreets) {
  for (unsigned i = 0; i < 20; ++i) {
    keeper_.take(greeting(6, 1, 0, 1), 1, now_);
    keeper_.take(greeting(6, 1, number_, 100 + i), 1, now_);
    keeper_.take(greeting(6, 1, 0, 1), 1, now_);
    pass_intervals(1);
    EXPECT_THAT(echoes_to(6, 1), testing::IsSupersetOf<std::uint64_t>({100 + i, 1}));
    EXPECT_TRUE(links_.up({1, 2}));
  }
}

// Servers 0 and 6, over their link at level 1. Somebody sends recorded greetings of both, many of
// them before and after each of theirs.
TEST_F(LinkKeeperTest, BringsALinkUpHoweverManyRecordedGreetingsCome) {
  const bcube::NeighbourTable neighbours(space_, 6);
  ServerLinks links(space_);
  LinkKeeper other({.interval = kPause, .first_number = 5'000}, neighbours, links);
  const auto deliver = [&](LinkKeeper& from, LinkKeeper& to, bcube::ServerId sender,
                           bcube::ServerId receiver, std::uint8_t digit) {
    const auto recorded = [&] {
      for (std::uint64_t number = 1; number <= 5; ++number) {
        protocol::ParsedFrame old = greeting(sender, 1, 3'000 + number, 2'000 + number);
        old.link.digit = digit;
        to.take(old, 1, now_);
      }
    };
    recorded();
    for (const protocol::ParsedFrame& frame : owed_by(from, 1)) {
      if (frame.routing.destination == receiver) to.take(frame, 1, now_);
    }
    recorded();
  };
  pass_intervals(1);
  for (unsigned i = 0; i < 20; ++i) {
    pass_intervals(1);
    other.keep(now_);
    for (unsigned exchanges = 0; exchanges < 3; ++exchanges) {
      deliver(keeper_, other, 0, 6, 2);
      deliver(other, keeper_, 6, 0, 0);
    }
    if (i < bcube::LinkWatch::kSilentIntervals) continue;
    EXPECT_TRUE(links_.up({1, 2})) << i;
    EXPECT_TRUE(links.up({1, 0})) << i;
  }
}

TEST_F(LinkKeeperTest, FindsAServerThatDoesNotBelongThereOnceItLives) {
  LinkKeeper announcing({.interval = kPause, .announces = true}, neighbours_, links_);
  announcing.keep(now_);
  const auto announcement = [](std::uint64_t echo) {
    protocol::ParsedFrame frame = greeting(2, 0, echo);
    frame.routing.destination = 2;
    return frame;
  };
  EXPECT_EQ(announcing.take(announcement(0), 1, now_), GreetingVerdict::wrong_link);
  EXPECT_EQ(announcing.wrong_greeting(1, now_).fault, GreetingFault::none) << "a recorded one";
  owed_by(announcing, 1);
  announcing.keep(now_ += 1'000 * kPause);
  const auto announced = owed_by(announcing, 1).front();
  ASSERT_TRUE(protocol::is_announcement(announced.routing));
  EXPECT_EQ(announced.link.echo, 77u);
  announcing.take(announcement(announced.link.number), 1, now_);
  EXPECT_EQ(announcing.wrong_greeting(1, now_).fault, GreetingFault::other_level);
}

// By the delay of the links an answer is there after eight intervals.
TEST_F(LinkKeeperTest, WaitsForAnswersAsLongAsTheyAreOnTheirWay) {
  LinkKeeper patient({.interval = kPause, .intervals_on_the_way = 8}, neighbours_, links_);
  for (number_ = 1; number_ < 30; ++number_) {
    patient.take(greeting(6, 1, number_ <= 8 ? 0 : number_ - 8), 1, now_);
    patient.keep(now_ += kPause);
  }
  EXPECT_TRUE(links_.up({1, 2}));
  EXPECT_FALSE(links_.up({1, 1})) << "nothing is heard there";
}

TEST_F(LinkKeeperTest, FindsThatANeighbourDoesNotHearThisServer) {
  for (unsigned i = 0; i < 3; ++i) {
    keeper_.take(greeting(6, 1), 1, now_);
    pass_intervals(1);
  }
  const std::uint64_t last = number_;
  unsigned intervals = 0;
  for (; links_.up({1, 2}) && intervals < 20; ++intervals) {
    keeper_.take(greeting(6, 1, last), 1, now_);
    pass_intervals(1);
  }
  EXPECT_LE(intervals, LinkKeeper::kFreshIntervals + bcube::LinkWatch::kSilentIntervals);
}

TEST_F(LinkKeeperTest, FindsANeighbourThatWasStartedAnew) {
  for (unsigned i = 0; i < 5; ++i) {
    keeper_.take(greeting(6, 1), 1, now_);
    pass_intervals(1);
  }
  write_owed(1);
  keeper_.take(greeting(6, 1, 0, 500), 1, now_);
  EXPECT_THAT(echoes_to(6, 1), testing::ElementsAre(500)) << "at once";
  keeper_.take(greeting(6, 1, number_, 501), 1, now_);
  pass_intervals(1);
  EXPECT_THAT(echoes_to(6, 1), testing::ElementsAre(501));
}

TEST_F(LinkKeeperTest, HidesNoFaultBehindAnotherKey) {
  keeper_.take(greeting(2, 0), 1, now_);
  keeper_.note_other_key(greeting(6, 1).link, 1, now_);
  EXPECT_EQ(keeper_.wrong_greeting(1, now_).fault, GreetingFault::other_level);
  EXPECT_EQ(keeper_.other_key(1, now_).fault, GreetingFault::other_key);
  EXPECT_EQ(keeper_.other_key(1, now_).server, 6);
  EXPECT_EQ(keeper_.other_key(0, now_).fault, GreetingFault::none);
}

// Server 2 has two ports on the switch of three servers, and all that comes is over the second
// rail.
TEST(LinkKeeperOnRails, FindsThatOneIsDownAndTheOtherIsNot) {
  const auto space = bcube::AddressSpace(std::vector<unsigned>{3}).with_ports({1, 1, 2});
  const bcube::NeighbourTable neighbours(space, 0);
  ServerLinks links(space);
  LinkKeeper keeper({.interval = kPause}, neighbours, links);
  std::uint64_t number = 1;
  const auto take = [&](std::uint16_t from, unsigned rail) {
    protocol::ParsedFrame frame;
    frame.type = protocol::FrameType::greeting;
    frame.routing.source = from;
    frame.link = {from, 0, static_cast<std::uint8_t>(space.hop_digit(0, 0, rail)), 77, number};
    return keeper.take(frame, 0, 0);
  };
  for (unsigned i = 1; i <= 2 * bcube::LinkWatch::kSilentIntervals; ++i) {
    EXPECT_EQ(take(2, 1), GreetingVerdict::fits);
    keeper.keep(i * kPause);
    ++number;
  }
  EXPECT_TRUE(links.up(bcube::hop_over(space, 0, 2, 1)));
  EXPECT_FALSE(links.up(bcube::hop_over(space, 0, 2, 0)));
  EXPECT_EQ(take(2, 2), GreetingVerdict::wrong_link) << "it has no third port";
  EXPECT_EQ(take(1, 1), GreetingVerdict::wrong_link) << "one rail joins the two";
}

}  // namespace
}  // namespace gradcube::dataplane
