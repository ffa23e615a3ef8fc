// What an engine does with frames that are on their way to other servers, and how it reaches
// servers that are no neighbours: server [0,0] of bcube:3,2, turned by hand.

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <poll.h>
#include <random>

#include "protocol/message_frame.h"
#include "tests/unit/dataplane/engine/relay_fixture.h"
#include "tests/unit/protocol/seed.h"

namespace gradcube::dataplane {
namespace {

using protocol::Hop;
using testing::IsEmpty;

// A frame of a daemon's message.
std::vector<std::uint8_t> message_frame(const protocol::RoutingHeader& route) {
  const std::vector<std::uint8_t> content(100, 0x5a);
  std::vector<std::uint8_t> bytes(1024);
  bytes.resize(protocol::MessageSplitter({}, route, bytes.size(), 1, 1, content).write(0, bytes));
  return bytes;
}

TEST_F(RelayTest, SendsAFrameOnThroughThePortOfItsNextHop) {
  const std::vector<std::uint8_t> bytes = frame(routing(1, 6, kThroughHere));
  put(here_, 0, bytes);
  poll();
  EXPECT_THAT(sent(here_.ports[0]), IsEmpty());
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), 1u);
  const protocol::RoutingHeader& route = frames[0].frame.routing;
  EXPECT_EQ(route.source, 1);
  EXPECT_EQ(route.destination, 6);
  EXPECT_EQ(route.hop_index, 1);
  const bcube::LinkAddress next = bcube::embedded_link_address(1, 6);
  EXPECT_TRUE(std::equal(next.mac.begin(), next.mac.end(), frames[0].bytes.begin()));
  // Behind the hop index nothing has changed.
  EXPECT_TRUE(std::equal(bytes.begin() + 44, bytes.end(), frames[0].bytes.begin() + 44,
                         frames[0].bytes.end()));
  EXPECT_EQ(here_.engine->counters().relayed, 1u);
}

TEST_F(RelayTest, RefusesEveryHopThatDoesNotExist) {
  unsigned relayed = 0;
  for (unsigned level = 0; level < 256; ++level) {
    for (unsigned digit = 0; digit < 256; ++digit) {
      const Hop hop{static_cast<std::uint8_t>(level), static_cast<std::uint8_t>(digit)};
      put(here_, 0, frame(routing(1, 6, {{0, 0}, hop}), 0));
      poll();
      for (FakePort& port : here_.ports) relayed += static_cast<unsigned>(sent(port).size());
    }
  }
  EXPECT_EQ(relayed, 4u);  // its neighbours
  EXPECT_EQ(dropped(DropReason::no_such_hop), 65536u - 4);
}

TEST_F(RelayTest, RefusesAFrameWhoseHopsEndAtTheWrongServer) {
  put(here_, 0, frame(routing(1, 6, {{0, 0}})));
  poll();
  EXPECT_EQ(dropped(DropReason::not_for_this_server), 1u);
}

TEST_F(RelayTest, DropsWhatFindsNoRoomAndSendsTheRestInOrder) {
  here_.ports[1].room = 0;
  for (unsigned i = 0; i < RelayQueue::kCapacity + 3; ++i) {
    protocol::RoutingHeader route = routing(1, 6, kThroughHere);
    route.source = static_cast<std::uint16_t>(i + 10);
    put(here_, 0, frame(route, 0));
  }
  for (unsigned i = 0; i < 20; ++i) poll();
  EXPECT_EQ(dropped(DropReason::relay_full), 3u);
  EXPECT_TRUE(here_.engine->busy());
  EXPECT_THAT(sent(here_.ports[1]), IsEmpty());
  here_.ports[1].room = 64;
  EXPECT_LE(here_.engine->next_event(), now_);
  for (unsigned i = 0; i < 40; ++i) poll();
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), std::size_t{RelayQueue::kCapacity});
  for (unsigned i = 0; i < frames.size(); ++i) EXPECT_EQ(frames[i].frame.routing.source, i + 10);
  EXPECT_FALSE(here_.engine->busy());
}

TEST_F(RelayTest, HandsMessagesToTheControlThreadAsLongAsThereIsRoom) {
  const std::vector<std::uint8_t> mine = message_frame(routing(1, 0, {{0, 0}}));
  for (unsigned i = 0; i < MessageInbox::kCapacity + 2; ++i) {
    put(here_, 0, mine);
    poll();
  }
  EXPECT_EQ(dropped(DropReason::inbox_full), 2u);
  pollfd readable{here_.inbox.descriptor(), POLLIN, 0};
  EXPECT_EQ(::poll(&readable, 1, 0), 1);
  unsigned taken = 0;
  for (; rte_mbuf* frame = here_.inbox.take(); ++taken) {
    const auto* bytes = rte_pktmbuf_mtod(frame, const std::uint8_t*);
    EXPECT_TRUE(std::equal(mine.begin(), mine.end(), bytes, bytes + frame->data_len));
    rte_pktmbuf_free(frame);
  }
  EXPECT_EQ(taken, MessageInbox::kCapacity);
  EXPECT_EQ(::poll(&readable, 1, 0), 0) << "nothing is left";
}

TEST_F(RelayTest, SendsAMessageOnLikeAnyOtherFrame) {
  put(here_, 0, message_frame(routing(1, 6, kThroughHere)));
  put(here_, 0, message_frame(routing(1, 6, {{0, 0}})));
  poll();
  EXPECT_EQ(sent(here_.ports[1]).size(), 1u);
  EXPECT_EQ(dropped(DropReason::not_for_this_server), 1u);
  EXPECT_EQ(here_.inbox.take(), nullptr);
}

TEST_F(RelayTest, SendsWhatTheControlThreadPosts) {
  const std::vector<std::uint8_t> bytes = message_frame(routing(0, 3, {{1, 1}}));
  rte_mbuf* frame = frames_.allocate();
  std::memcpy(rte_pktmbuf_append(frame, static_cast<std::uint16_t>(bytes.size())), bytes.data(),
              bytes.size());
  here_.engine->post(1, frame);
  EXPECT_LE(here_.engine->next_event(), now_);
  poll();
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), 1u);
  EXPECT_EQ(frames[0].bytes, bytes);
}

TEST_F(RelayTest, FreesTheFramesThatWaitWhenItEnds) {
  here_.ports[1].room = 0;
  put(here_, 0, frame(routing(1, 6, kThroughHere)));
  poll();
  EXPECT_EQ(packets_in_use(frames_), 1u);
}

// The hop index is all that ends a frame's way, so whatever the list says it is at most 8 hops.
TEST_F(RelayTest, EndsEveryListOfHops) {
  const std::uint64_t seed = protocol::test_seed(20'260'101);
  SCOPED_TRACE(protocol::seed_trace(seed));
  std::mt19937_64 random(seed);
  const bcube::AddressSpace space = cube();
  std::map<bcube::ServerId, std::unique_ptr<Relay>> all;
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    all[server] = std::make_unique<Relay>(server, EnginePools{packets_, answers_});
  }
  unsigned longest = 0;
  for (unsigned i = 0; i < 3000; ++i) {
    std::vector<Hop> hops(1 + random() % protocol::kMaxHops);
    for (Hop& hop : hops) {
      hop = {static_cast<std::uint8_t>(random() % 2), static_cast<std::uint8_t>(random() % 4)};
    }
    bcube::ServerId at = random() % space.servers();
    std::vector<std::uint8_t> bytes =
        frame(routing(1, 6, hops, static_cast<unsigned>(random() % hops.size())), 0);
    unsigned relays = 0;
    for (bool moves = true; moves;) {
      put(*all[at], 0, bytes);
      poll(*all[at]);
      moves = false;
      for (unsigned level = 0; level < 2; ++level) {
        for (const Sent& onward : sent(all[at]->ports[level])) {
          const Hop hop = onward.frame.routing.hops[onward.frame.routing.hop_index];
          ASSERT_EQ(hop.level, level);
          bytes = onward.bytes;
          at = space.with_digit(at, level, hop.digit);
          ASSERT_FALSE(moves);
          moves = true;
        }
      }
      relays += moves ? 1 : 0;
      ASSERT_LT(relays, protocol::kMaxHops);
    }
    longest = std::max(longest, relays);
  }
  EXPECT_GE(longest, 4u);
}

TEST_F(DistantPeers, AreAskedBeforeAnythingIsSentToThem) {
  session_.submit(kElements);
  poll();
  for (FakePort& port : here_.ports) {
    for (const Sent& each : sent(port)) {
      const bool near = bcube::are_neighbours(cube(), 0, each.frame.routing.destination);
      EXPECT_EQ(each.frame.is_segment, near);
      EXPECT_GT(each.frame.transport.backlog, 0);
    }
  }
}

TEST_F(DistantPeers, AreReachedOverTheHopsOfTheirRoute) {
  session_.submit(kElements);
  poll();
  for (FakePort& port : here_.ports) sent(port);
  grant(4, 3);  // [1,1]
  EXPECT_THAT(sent(here_.ports[0]), IsEmpty());
  const std::vector<Sent> frames = sent(here_.ports[1]);
  ASSERT_EQ(frames.size(), 3u);
  for (const Sent& each : frames) {
    EXPECT_TRUE(each.frame.is_segment);
    EXPECT_EQ(each.frame.payload_bytes, kSegmentBytes);
    const protocol::RoutingHeader& route = each.frame.routing;
    EXPECT_EQ(route.destination, 4);
    EXPECT_EQ(route.hop_count, 2);
    EXPECT_EQ(route.hop_index, 0);
    EXPECT_EQ(route.hops[0], (Hop{1, 1}));
    EXPECT_EQ(route.hops[1], (Hop{0, 1}));
  }
}

// A frame of a distant server came over the port of its last hop: there it counts for the credit.
TEST_F(DistantPeers, CountForThePortThatTheirFramesComeInThrough) {
  for (const Flow& flow : job_->executors().front().flows()) {
    if (bcube::are_neighbours(cube(), 0, flow.peer)) {
      EXPECT_EQ(flow.out->number, flow.port_in);
      continue;
    }
    EXPECT_EQ(flow.out->number, bcube::shortest_route(cube(), 0, flow.peer)[0].level);
    EXPECT_EQ(flow.port_in, bcube::shortest_route(cube(), flow.peer, 0)[1].level);
  }
}

TEST_F(DistantPeers, ShareThePortWithRelayedFramesByBytes) {
  session_.submit(kElements);
  poll();
  for (const bcube::ServerId near : {3U, 6U}) grant(near, 16);
  for (FakePort& port : here_.ports) sent(port);
  here_.ports[1].room = 0;
  for (const bcube::ServerId near : {3U, 6U}) grant(near, 32);
  for (unsigned i = 0; i < 40; ++i) {
    put(here_, 0, frame(routing(1, 6, kThroughHere), kSegmentBytes / 2));
  }
  poll();
  poll();
  here_.ports[1].room = 24;
  poll();
  std::uint64_t relayed = 0;
  std::uint64_t own = 0;
  for (const Sent& each : sent(here_.ports[1])) {
    if (!each.frame.is_segment) continue;
    (each.frame.routing.source == 1 ? relayed : own) += each.bytes.size();
  }
  EXPECT_GT(own, 0u);
  EXPECT_NEAR(static_cast<double>(relayed), static_cast<double>(own), 1000.0);
}

}  // namespace
}  // namespace gradcube::dataplane
