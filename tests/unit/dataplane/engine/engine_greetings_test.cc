// What an engine learns from greetings of who is not the neighbour that it expects, and what it
// tells whoever hears it: server [0,0] of bcube:3,2, turned by hand.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "protocol/crc.h"
#include "protocol/link_frame.h"
#include "tests/unit/dataplane/engine/relay_fixture.h"

namespace gradcube::dataplane {
namespace {

using protocol::FrameType;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kInterval = 80'000'000;
constexpr Nanoseconds kSecond = 1'000'000'000;
constexpr protocol::SettingsDigest kOurs = {0x600d, 9000, 1'000'000'000};
constexpr protocol::SettingsDigest kOthers = {0xbad, 1500, 0};

class EngineGreetings : public RelayTest {
 protected:
  explicit EngineGreetings(bool announces = true) : RelayTest({kInterval, kOurs, announces}) {}

  struct From {
    bcube::ServerId server = 0;
    std::uint8_t level = 0;
    protocol::SettingsDigest settings = kOurs;
    // Nobody: whoever hears it.
    std::optional<bcube::ServerId> to = std::nullopt;
    std::uint8_t digit_of_announcement = 1;
    bool recorded = false;
  };
  std::vector<std::uint8_t> greeting(const From& from) const {
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    const std::uint8_t digit = from.to.has_value() ? 0 : from.digit_of_announcement;
    bytes.resize(protocol::write_link_frame(
        bytes, FrameType::greeting, {},
        routing(from.server, from.to.value_or(from.server), {{from.level, digit}}), 49152,
        {static_cast<std::uint16_t>(from.server), from.level, digit, 77,
         from.recorded ? 0 : own_number_, from.settings}));
    return bytes;
  }
  void hear(unsigned port, const From& from) {
    put(here_, port, greeting(from));
    poll();
  }
  // Lets time pass, in which the neighbours at the port are heard.
  void pass(unsigned intervals, unsigned port, const std::vector<From>& neighbours) {
    for (unsigned i = 0; i < intervals; ++i) {
      for (const From& neighbour : neighbours) put(here_, port, greeting(neighbour));
      now_ += kInterval;
      poll();
      for (FakePort& each : here_.ports) {
        for (const Sent& one : sent(each)) {
          own_number_ = one.frame.link.number;
        }
      }
    }
  }
  GreetingFault fault(unsigned port) const { return here_.engine->wrong_greeting(port).fault; }
  bool up(std::uint8_t level, std::uint8_t digit) const {
    return here_.links.up(bcube::Hop{level, digit});
  }
  std::vector<Sent> announcements(FakePort& port) {
    std::vector<Sent> found;
    for (const Sent& each : sent(port)) {
      if (protocol::is_announcement(each.frame.routing)) found.push_back(each);
    }
    return found;
  }

  std::uint64_t own_number_ = 1;  // as the first interval's
};

TEST_F(EngineGreetings, TellWhoeverHearsAPortWhichOneItIsOnceInASecond) {
  std::vector<unsigned> counts;
  for (FakePort& port : here_.ports) sent(port);
  for (unsigned i = 0; i < 26; ++i) {  // 2.08 s
    now_ += kInterval;
    poll();
    for (unsigned level = 0; level < 2; ++level) {
      for (const Sent& each : announcements(here_.ports[level])) {
        counts.push_back(level);
        EXPECT_EQ(each.frame.type, FrameType::greeting);
        EXPECT_EQ(each.frame.routing.source, 0);
        EXPECT_EQ(each.frame.routing.hop_count, 1);
        EXPECT_EQ(each.frame.routing.hops[0], (protocol::Hop{static_cast<std::uint8_t>(level), 0}));
        EXPECT_EQ(each.frame.link.server, 0);
        EXPECT_EQ(each.frame.link.level, level);
        EXPECT_EQ(each.frame.link.digit, 0);
        EXPECT_EQ(each.frame.link.settings, kOurs);
        EXPECT_EQ(std::vector<std::uint8_t>(each.bytes.begin(), each.bytes.begin() + 6),
                  std::vector<std::uint8_t>(6, 0xff));
      }
    }
  }
  EXPECT_THAT(counts, ElementsAre(0, 1, 0, 1));
}

TEST_F(EngineGreetings, TellNeighboursOfTheSettings) {
  now_ += kInterval;
  poll();
  unsigned greeted = 0;
  for (const Sent& each : sent(here_.ports[1])) {
    if (protocol::is_announcement(each.frame.routing)) continue;
    EXPECT_EQ(each.frame.link.settings, kOurs);
    ++greeted;
  }
  EXPECT_EQ(greeted, 2u);
}

TEST_F(EngineGreetings, OfNeighboursAreNotWrong) {
  hear(0, {1, 0});
  hear(1, {6, 1});
  hear(0, {2, 0, kOurs, 0});
  EXPECT_EQ(fault(0), GreetingFault::none);
  EXPECT_EQ(fault(1), GreetingFault::none);
  EXPECT_EQ(dropped(DropReason::wrong_link), 0u);
  EXPECT_EQ(dropped(DropReason::not_for_this_server), 0u);
}

TEST_F(EngineGreetings, ShowThatLevelsAreCrossed) {
  hear(1, {2, 0});
  const WrongGreeting wrong = here_.engine->wrong_greeting(1);
  EXPECT_EQ(wrong.fault, GreetingFault::other_level);
  EXPECT_EQ(wrong.server, 2);
  EXPECT_EQ(wrong.level, 0);
  EXPECT_EQ(fault(0), GreetingFault::none);
  EXPECT_EQ(dropped(DropReason::wrong_link), 1u);
}

TEST_F(EngineGreetings, ShowAServerThatIsOnAnotherSwitch) {
  hear(0, {4, 0});  // [1,1]
  EXPECT_EQ(fault(0), GreetingFault::no_neighbour);
  hear(1, {60'000, 1});
  EXPECT_EQ(fault(1), GreetingFault::no_neighbour);
  EXPECT_EQ(here_.engine->wrong_greeting(1).server, 60'000);
  EXPECT_EQ(dropped(DropReason::wrong_link), 2u);
}

TEST_F(EngineGreetings, ShowASecondServerWithTheSameAddress) {
  hear(0, {0, 0});
  EXPECT_EQ(fault(0), GreetingFault::own_address);
  hear(1, {0, 0});
  EXPECT_EQ(fault(1), GreetingFault::own_address);
  EXPECT_EQ(here_.engine->wrong_greeting(1).level, 0);
}

TEST_F(EngineGreetings, ThatWereRecordedChangeNothingButCounters) {
  hear(0, {.server = 4, .level = 0, .recorded = true});
  hear(1, {.server = 2, .level = 0, .recorded = true});
  hear(1, {.server = 6, .level = 1, .settings = kOthers, .to = 0, .recorded = true});
  EXPECT_EQ(fault(0), GreetingFault::none);
  EXPECT_EQ(fault(1), GreetingFault::none);
  EXPECT_EQ(dropped(DropReason::wrong_link), 2u);
  EXPECT_EQ(dropped(DropReason::wrong_cluster), 1u);
  for (unsigned i = 0; i < 4; ++i) {
    hear(1, {.server = 6, .level = 1, .to = 0, .recorded = true});
    pass(1, 1, {{3, 1, kOurs, 0}});
  }
  EXPECT_EQ(here_.engine->counters().stale_greetings, 4u);
  EXPECT_TRUE(up(1, 1));
  EXPECT_FALSE(up(1, 2)) << "it shows no life";
}

TEST_F(EngineGreetings, OfAnotherClusterAreNoSignOfLife) {
  pass(4, 1, {{3, 1, kOurs, 0}, {6, 1, kOthers, 0}});
  EXPECT_TRUE(up(1, 1));
  EXPECT_FALSE(up(1, 2));
  EXPECT_EQ(dropped(DropReason::wrong_cluster), 4u);
  const WrongGreeting wrong = here_.engine->wrong_greeting(1);
  EXPECT_EQ(wrong.fault, GreetingFault::other_settings);
  EXPECT_EQ(wrong.settings, kOthers);
  EXPECT_EQ(wrong.server, 6);
  // Once it was started anew with the right settings.
  pass(bcube::LinkWatch::kCalm, 1, {{3, 1, kOurs, 0}, {6, 1, kOurs, 0}});
  EXPECT_TRUE(up(1, 2));
}

TEST_F(EngineGreetings, ToWhoeverHearsThemAreNoSignOfLife) {
  pass(4, 1, {{3, 1, kOurs, 0}, {.server = 6, .level = 1, .digit_of_announcement = 0}});
  EXPECT_TRUE(up(1, 1));
  EXPECT_FALSE(up(1, 2));
  EXPECT_EQ(dropped(DropReason::wrong_link), 0u);
}

TEST_F(EngineGreetings, OverAnotherPortThanTheyNameAreNoSignOfLife) {
  pass(4, 0, {{3, 1, kOurs, 0}});
  EXPECT_FALSE(up(1, 1));
  EXPECT_EQ(fault(0), GreetingFault::other_level);
}

TEST_F(EngineGreetings, ThatWereWrongAreForgottenAfterAWhile) {
  hear(1, {2, 0});
  now_ += 4 * kSecond;
  poll();
  EXPECT_EQ(fault(1), GreetingFault::other_level);
  now_ += 2 * kSecond;
  poll();
  EXPECT_EQ(fault(1), GreetingFault::none);
  hear(1, {2, 0});
  EXPECT_EQ(fault(1), GreetingFault::other_level);
}

TEST_F(EngineGreetings, OfAnotherServerThanTheirSenderShowNothing) {
  std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
  bytes.resize(protocol::write_link_frame(bytes, FrameType::greeting, {}, routing(4, 4, {{0, 1}}),
                                          49152, {2, 1, 1, 0, 0, kOthers}));
  put(here_, 0, bytes);
  bytes.resize(protocol::kMaxHeaderBytes);
  bytes.resize(protocol::write_link_frame(bytes, FrameType::greeting, {},
                                          routing(4, 4, {{0, 0}, {0, 1}}, 1), 49152,
                                          {4, 1, 1, 0, 0, kOthers}));
  put(here_, 0, bytes);
  poll();
  EXPECT_EQ(fault(0), GreetingFault::none);
  EXPECT_EQ(dropped(DropReason::wrong_link), 2u);
}

constexpr std::uint32_t kLongest = 700;

class PaddedGreetings : public RelayTest {
 protected:
  PaddedGreetings() : RelayTest({kInterval, kOurs, false, {}, kLongest}) {}

  // Of [0,1], which asks for a padded one.
  static std::vector<std::uint8_t> greeting(std::size_t padding) {
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    const std::vector<std::uint8_t> zeros(padding);
    bytes.resize(protocol::write_link_frame(
        bytes, FrameType::greeting, {}, routing(1, 0, {{0, 0}}), 49152,
        {1, 0, 0, 77, 2, kOurs, {.sent = true, .wanted = true}}, nullptr, zeros));
    bytes.insert(bytes.end(), zeros.begin(), zeros.end());
    return bytes;
  }
  static std::size_t padding() {
    return kLongest - protocol::header_bytes(protocol::FrameType::greeting, 1);
  }
  std::uint64_t malformed(protocol::FrameError error) const {
    return here_.engine->counters().malformed[static_cast<std::size_t>(error)];
  }
  // What the port has sent to [0,1].
  std::vector<Sent> sent_to_one() {
    std::vector<Sent> found = sent(here_.ports[0]);
    std::erase_if(found, [](const Sent& each) { return each.frame.routing.destination != 1; });
    return found;
  }
};

TEST_F(PaddedGreetings, AreSentWhereTheyAreWantedBeforeOnesThatTellOfThem) {
  now_ += kInterval;
  poll();
  sent_to_one();
  put(here_, 0, greeting(0));
  poll();
  const std::vector<Sent> answers = sent_to_one();
  ASSERT_EQ(answers.size(), 3u) << "the last one answers the greeting";
  EXPECT_EQ(answers[0].bytes.size(), kLongest);
  EXPECT_TRUE(
      protocol::crc_is_right(std::span(answers[0].bytes).first(answers[0].frame.header_bytes),
                             std::span(answers[0].bytes).subspan(answers[0].frame.header_bytes)));
  EXPECT_EQ(answers[1].frame.payload_bytes, 0u);
  EXPECT_TRUE(answers[1].frame.link.full_frames.sent);
  EXPECT_EQ(answers[1].frame.link.number, answers[0].frame.link.number);
}

TEST_F(PaddedGreetings, AreTakenOfTheRightLengthAndUndamagedAlone) {
  now_ += kInterval;
  poll();
  std::vector<std::uint8_t> damaged = greeting(padding());
  damaged.back() ^= 1;
  put(here_, 0, damaged);
  put(here_, 0, greeting(padding() - 1));
  poll();
  EXPECT_EQ(malformed(protocol::FrameError::bad_crc), 1u);
  EXPECT_EQ(malformed(protocol::FrameError::bad_length), 1u);
  put(here_, 0, greeting(0));
  poll();
  EXPECT_TRUE(sent_to_one().back().frame.link.full_frames.wanted) << "none has come";
  put(here_, 0, greeting(padding()));
  poll();
  const std::vector<Sent> answers = sent_to_one();
  ASSERT_FALSE(answers.empty());
  EXPECT_FALSE(answers.back().frame.link.full_frames.wanted);
}

class SilentEngine : public EngineGreetings {
 protected:
  SilentEngine() : EngineGreetings(false) {}
};

TEST_F(SilentEngine, TellsNeighboursAloneWhereCablesCannotBeWrong) {
  for (unsigned i = 0; i < 26; ++i) {
    now_ += kInterval;
    poll();
    for (FakePort& port : here_.ports) EXPECT_THAT(announcements(port), IsEmpty());
  }
}

}  // namespace
}  // namespace gradcube::dataplane
