// What an engine learns of links, and what it does with its flows then: server [0,0] of bcube:3,2,
// turned by hand.

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "protocol/link_frame.h"
#include "tests/unit/dataplane/engine/relay_fixture.h"

namespace gradcube::dataplane {
namespace {

using protocol::FrameType;
using protocol::Hop;
using protocol::LinkHeader;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr Nanoseconds kGreetingInterval = 1'000'000;
constexpr std::uint64_t kTheirNumber = 77;
constexpr std::array<bcube::ServerId, 4> kNeighbours = {1, 2, 3, 6};

class EngineLinks : public DistantPeers {
 protected:
  EngineLinks() : DistantPeers({.interval = kGreetingInterval}) {}

  static std::vector<std::uint8_t> link_frame(FrameType type, const protocol::RoutingHeader& route,
                                              const LinkHeader& link) {
    std::vector<std::uint8_t> bytes(protocol::kMaxHeaderBytes);
    bytes.resize(protocol::write_link_frame(bytes, type, {}, route, 49152, link));
    return bytes;
  }
  static std::vector<std::uint8_t> greeting(bcube::ServerId from, std::uint64_t echo) {
    const std::uint8_t level = from < 3 ? 0 : 1;
    return link_frame(FrameType::greeting, routing(from, 0, {{level, 0}}),
                      {static_cast<std::uint16_t>(from), level, 0, kTheirNumber, echo});
  }
  // So many intervals in which these neighbours greet.
  void pass(unsigned intervals, const std::vector<bcube::ServerId>& neighbours) {
    for (unsigned i = 0; i < intervals; ++i) {
      for (const bcube::ServerId from : neighbours) greet(from);
      now_ += kGreetingInterval;
      poll();
      for (FakePort& port : here_.ports) note_numbers(sent(port));
    }
  }
  // In answer to what the engine has sent last.
  void greet(bcube::ServerId from) { put(here_, from < 3 ? 0 : 1, greeting(from, own_number_)); }
  void note_numbers(const std::vector<Sent>& frames) {
    for (const Sent& each : frames) {
      if (each.frame.type == FrameType::greeting) own_number_ = each.frame.link.number;
    }
  }
  bool up(unsigned level, unsigned digit) const {
    return here_.links.up(
        bcube::Hop{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)});
  }
  const Flow& flow_to(bcube::ServerId peer) {
    for (const Flow& flow : job_->executors().front().flows()) {
      if (flow.peer == peer) return flow;
    }
    throw std::runtime_error("no such flow");
  }
  std::vector<unsigned> levels_to(bcube::ServerId peer) {
    std::vector<unsigned> levels;
    for (const bcube::Hop& hop : flow_to(peer).route) levels.push_back(hop.level);
    return levels;
  }
  void tell_of_path_failure(const LinkHeader& link) {
    put(here_, 0, link_frame(FrameType::path_failure, routing(1, 0, {{0, 0}}), link));
    poll();
  }

  std::uint64_t own_number_ = 1;
};

TEST_F(EngineLinks, GreetEveryNeighbourOnceInAnInterval) {
  for (unsigned i = 0; i < 10; ++i) {
    now_ += kGreetingInterval / 10;
    poll();
  }
  std::map<unsigned, unsigned> greeted;
  for (unsigned level = 0; level < 2; ++level) {
    for (const Sent& each : sent(here_.ports[level])) {
      if (each.frame.type != FrameType::greeting) continue;
      ++greeted[each.frame.routing.destination];
      EXPECT_EQ(each.frame.link.server, 0);
      EXPECT_EQ(each.frame.link.level, level);
      EXPECT_EQ(each.frame.link.digit, cube().digit(each.frame.routing.destination, level));
      EXPECT_NE(each.frame.link.number, 0u);
    }
  }
  for (const bcube::ServerId neighbour : kNeighbours) EXPECT_EQ(greeted[neighbour], 1u);
  EXPECT_LE(here_.engine->next_event(), now_ + kGreetingInterval);
}

TEST_F(EngineLinks, GreetNeighboursBeforeAllElseAsSoonAsThereIsRoom) {
  session_.submit(kElements);
  poll();
  for (const bcube::ServerId near : {1U, 2U}) grant(near, 32);
  for (FakePort& port : here_.ports) sent(port);
  here_.ports[0].room = 0;
  now_ += kGreetingInterval;
  poll();
  here_.ports[0].room = 1;
  EXPECT_EQ(here_.engine->next_event(), now_);
  std::vector<unsigned> greeted;
  for (unsigned i = 0; i < 2; ++i) {
    poll();
    const std::vector<Sent> frames = sent(here_.ports[0]);
    ASSERT_EQ(frames.size(), 1u);
    EXPECT_EQ(frames[0].frame.type, FrameType::greeting);
    greeted.push_back(frames[0].frame.routing.destination);
  }
  EXPECT_THAT(greeted, ElementsAre(1, 2));
}

TEST_F(EngineLinks, FindWhoIsSilentAndTellThem) {
  pass(4, {1, 2, 3});
  EXPECT_TRUE(up(0, 1) && up(0, 2) && up(1, 1));
  EXPECT_FALSE(up(1, 2));
  now_ += kGreetingInterval;
  poll();
  for (const Sent& each : sent(here_.ports[1])) {
    if (each.frame.type != FrameType::greeting) continue;
    EXPECT_EQ(each.frame.link.echo, each.frame.routing.destination == 3 ? kTheirNumber : 0);
  }
}

TEST_F(EngineLinks, LeadFlowsAroundASilentNeighbour) {
  EXPECT_THAT(levels_to(6), ElementsAre(1));
  pass(4, {1, 2, 3});
  EXPECT_THAT(levels_to(6), ElementsAre(0, 1, 0));
  EXPECT_EQ(flow_to(6).out->number, 0u);
  EXPECT_THAT(levels_to(3), ElementsAre(1));
  EXPECT_THAT(levels_to(7), ElementsAre(0, 1)) << "which does not begin with this link";
  pass(bcube::LinkWatch::kCalm, {1, 2, 3, 6});
  EXPECT_THAT(levels_to(6), ElementsAre(1));
}

TEST_F(EngineLinks, SendAgainWhatWasOnItsWay) {
  session_.submit(kElements);
  poll();
  grant(6, 3);
  std::vector<std::uint32_t> before;
  for (const Sent& each : sent(here_.ports[1])) {
    if (each.frame.is_segment && each.frame.routing.destination == 6) {
      before.push_back(each.frame.transport.sequence);
    }
  }
  ASSERT_EQ(before.size(), 3u);
  for (unsigned i = 0; i < 4; ++i) {
    for (const bcube::ServerId from : {1U, 2U, 3U}) greet(from);
    now_ += kGreetingInterval;
    for (FakePort& port : here_.ports) note_numbers(sent(port));
    poll();
    if (!up(1, 2)) break;
  }
  std::vector<std::uint32_t> again;
  for (const Sent& each : sent(here_.ports[0])) {
    if (each.frame.is_segment && each.frame.routing.destination == 6) {
      EXPECT_TRUE(each.frame.transport.sent_again);
      EXPECT_EQ(each.frame.routing.hop_count, 3);
      again.push_back(each.frame.transport.sequence);
    }
  }
  EXPECT_EQ(again, before);
}

TEST_F(EngineLinks, StayOnThePlannedRouteWhereNoneWorks) {
  pass(4, {});
  EXPECT_FALSE(up(0, 1) || up(0, 2) || up(1, 1) || up(1, 2));
  for (const Flow& flow : job_->executors().front().flows()) EXPECT_EQ(flow.route, flow.planned);
}

// What relays say may be over; that nothing comes over the own link is known.
TEST_F(EngineLinks, LeadFlowsOverThoseThatAreHeardWhereRelaysSayThatNoneWorks) {
  pass(4, {1, 2});
  for (const bcube::ServerId relay : {1, 2}) {
    for (const std::uint8_t digit : {1, 2}) {
      put(here_, 0,
          link_frame(FrameType::path_failure, routing(relay, 0, {{0, 0}}),
                     {static_cast<std::uint16_t>(relay), 1, digit}));
      pass(1, {1, 2});
    }
  }
  EXPECT_TRUE(here_.engine->paths_to(6).empty());
  EXPECT_EQ(flow_to(6).planned[0].level, 1);
  EXPECT_EQ(levels_to(6).front(), 0U);
  EXPECT_THAT(levels_to(7), ElementsAre(0, 1)) << "as planned: its first link works";
}

TEST_F(EngineLinks, AreNotChangedByGreetingsThatDoNotFit) {
  const std::vector<std::vector<std::uint8_t>> greetings = {
      // over another level than it names; to another digit; from no neighbour; of another server;
      // through a relay
      link_frame(FrameType::greeting, routing(6, 0, {{0, 0}}), {6, 0, 0}),
      link_frame(FrameType::greeting, routing(6, 0, {{1, 0}}), {6, 1, 1}),
      link_frame(FrameType::greeting, routing(4, 0, {{1, 0}}), {4, 1, 0}),
      link_frame(FrameType::greeting, routing(4, 0, {{1, 0}}), {6, 1, 0}),
      link_frame(FrameType::greeting, routing(6, 0, {{0, 0}, {1, 0}}, 1), {6, 1, 0}),
      link_frame(FrameType::greeting, routing(6, 0, {{200, 0}}), {6, 200, 0})};
  for (unsigned i = 0; i < 4; ++i) {
    for (const auto& bytes : greetings) put(here_, 1, bytes);
    now_ += kGreetingInterval;
    poll();
  }
  EXPECT_FALSE(up(1, 2));
  EXPECT_EQ(dropped(DropReason::wrong_link), 4 * greetings.size());
  std::vector<std::uint8_t> damaged = greeting(6, own_number_);
  damaged.back() ^= 1;
  put(here_, 1, damaged);
  poll();
  EXPECT_EQ(
      here_.engine->counters().malformed[static_cast<std::size_t>(protocol::FrameError::bad_crc)],
      1u);
}

TEST_F(EngineLinks, OfRelaysAreKnownFromThemForASecond) {
  EXPECT_THAT(levels_to(7), ElementsAre(0, 1));
  tell_of_path_failure({1, 1, 2, false});  // from [0,1] to [2,1]
  EXPECT_THAT(levels_to(7), ElementsAre(1, 0));
  EXPECT_THAT(levels_to(5), ElementsAre(0, 1)) << "over [0,2]";
  EXPECT_LE(here_.engine->next_event(), now_ + FailedHops::kKept);
  for (unsigned i = 0; i < 1001; ++i) pass(1, {1, 2, 3, 6});
  EXPECT_THAT(levels_to(7), ElementsAre(0, 1));
}

TEST_F(EngineLinks, OfRelaysAreNotBelievedWhenTheyDoNotExist) {
  for (const LinkHeader& link : std::vector<LinkHeader>{{9, 1, 1, false},
                                                        {0, 1, 1, false},
                                                        {1, 2, 1, false},
                                                        {1, 1, 3, false},
                                                        {1, 1, 0, false}}) {
    tell_of_path_failure(link);
  }
  put(here_, 0,  // of a link of [0,2]
      link_frame(FrameType::path_failure, routing(1, 0, {{0, 0}}), {2, 1, 1, false}));
  poll();
  EXPECT_EQ(dropped(DropReason::wrong_link), 6u);
  EXPECT_EQ(here_.engine->counters().reroutes, 0u);
}

TEST_F(EngineLinks, ThatAreDownAreToldToTheSourceOfAFrame) {
  pass(4, {1, 2, 3});
  put(here_, 0, frame(routing(1, 6, kThroughHere)));
  poll();
  unsigned relayed = 0;
  for (const Sent& each : sent(here_.ports[1])) relayed += each.frame.routing.source == 1 ? 1 : 0;
  EXPECT_EQ(relayed, 1u) << "it is sent on all the same";
  unsigned told = 0;
  for (const Sent& each : sent(here_.ports[0])) {
    if (each.frame.type != FrameType::path_failure) continue;
    ++told;
    EXPECT_EQ(each.frame.routing.source, 0);
    EXPECT_EQ(each.frame.routing.destination, 1);
    EXPECT_EQ(each.frame.routing.hop_count, 1);
    EXPECT_EQ(each.frame.routing.hops[0], (Hop{0, 1}));
    EXPECT_EQ(each.frame.link.server, 0);
    EXPECT_EQ(each.frame.link.level, 1);
    EXPECT_EQ(each.frame.link.digit, 2);
  }
  EXPECT_EQ(told, 1u);
  // The way back cannot be told of hops that did not lead here.
  put(here_, 0, frame(routing(8, 6, kThroughHere)));
  now_ += kGreetingInterval;
  poll();
  for (const Sent& each : sent(here_.ports[0])) {
    EXPECT_NE(each.frame.type, FrameType::path_failure);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
