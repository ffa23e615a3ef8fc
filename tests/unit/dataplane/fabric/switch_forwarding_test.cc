#include <algorithm>
#include <atomic>
#include <gtest/gtest.h>
#include <numeric>
#include <thread>

#include "tests/unit/dataplane/fabric/switch_fixture.h"
#include "tests/unit/dataplane/wait_until_rung.h"

namespace gradcube::dataplane {
namespace {

class SwitchForwardingTest : public SwitchTest {};

void release_nothing(void*, void*) {}

TEST_F(SwitchForwardingTest, FramesReachTheServerThatTheirAddressNamesInOrder) {
  build(4, {});
  for (std::uint32_t i = 0; i < 96; ++i) send(0, {.to = 1 + i % 3, .number = i});
  while (poll() != 0) {
  }
  for (std::uint16_t server = 1; server < 4; ++server) {
    std::vector<std::uint32_t> expected;
    for (std::uint32_t i = server - 1; i < 96; i += 3) expected.push_back(i);
    EXPECT_EQ(received_numbers(server), expected);
    EXPECT_EQ(switch_->counts(server).forwarded, 32u);
    EXPECT_EQ(switch_->counts(server).bytes, 3200u);
  }
}

TEST_F(SwitchForwardingTest, AFrameForNobodyIsDroppedAndCounted) {
  build(2, {});
  send(0, {.to = 77});
  rte_mbuf* runt = frames_.allocate();
  rte_pktmbuf_append(runt, 5);
  ASSERT_EQ(ports_[0]->transmit(0, &runt, 1), 1);
  while (poll() != 0) {
  }
  EXPECT_EQ(switch_->counts(0).unknown_mac, 2u);
}

TEST_F(SwitchForwardingTest, TheUdpSourcePortNamesTheReceiveQueue) {
  RingPortOptions four_queues;
  four_queues.queues = 3;
  build(2, {}, four_queues);
  for (std::uint16_t thread = 0; thread < 9; ++thread) {
    send(0, {.to = 1, .thread = thread, .number = thread});
  }
  while (poll() != 0) {
  }
  for (std::uint16_t queue = 0; queue < 3; ++queue) {
    const std::vector<std::uint32_t> expected{queue, queue + 3u, queue + 6u};
    EXPECT_EQ(received_numbers(1, queue), expected);
  }
}

TEST_F(SwitchForwardingTest, AFrameThatIsNotUdpArrivesOnTheFirstQueue) {
  RingPortOptions two_queues;
  two_queues.queues = 2;
  build(2, {}, two_queues);
  rte_mbuf* packet = frame({.to = 1, .thread = 1});
  put(rte_pktmbuf_mtod(packet, char*), 23, 6, 1);
  ASSERT_EQ(ports_[0]->transmit(1, &packet, 1), 1);
  while (poll() != 0) {
  }
  EXPECT_EQ(received_numbers(1, 0).size(), 1u);
}

TEST_F(SwitchForwardingTest, AShardTouchesOnlyItsOwnQueues) {
  RingPortOptions two_queues;
  two_queues.queues = 2;
  EmulatedSwitchOptions options;
  options.shards = 2;
  build(2, options, two_queues);
  send(0, {.to = 1, .thread = 0, .number = 10});
  send(0, {.to = 1, .thread = 1, .number = 11});
  switch_->shard(0).poll(clock_.now());
  EXPECT_EQ(received_numbers(1, 0), std::vector<std::uint32_t>{10});
  EXPECT_TRUE(received_numbers(1, 1).empty());
  EXPECT_TRUE(ports_[0]->nothing_sent(0));
  EXPECT_FALSE(ports_[0]->nothing_sent(1));
  // Sent on queue 1 in the name of thread 0: it must not cross over to the other shard's ring.
  rte_mbuf* stray = frame({.to = 1, .thread = 0, .number = 12});
  ASSERT_EQ(ports_[0]->transmit(1, &stray, 1), 1);
  switch_->shard(1).poll(clock_.now());
  EXPECT_EQ(received_numbers(1, 1), (std::vector<std::uint32_t>{11, 12}));
  EXPECT_EQ(switch_->counts(1).resteered, 1u);
}

TEST_F(SwitchForwardingTest, AChainedPacketPassesByReference) {
  build(2, {});
  std::vector<char> payload(1000, 'g');
  rte_mbuf_ext_shared_info owner{};
  owner.free_cb = release_nothing;
  rte_mbuf_ext_refcnt_set(&owner, 1);
  rte_mbuf* header = frame({.to = 1, .bytes = 60});
  rte_mbuf* body = frames_.allocate();
  rte_pktmbuf_attach_extbuf(body, payload.data(), RTE_BAD_IOVA,
                            static_cast<std::uint16_t>(payload.size()), &owner);
  rte_pktmbuf_append(body, static_cast<std::uint16_t>(payload.size()));
  ASSERT_EQ(rte_pktmbuf_chain(header, body), 0);
  rte_mbuf* sent = header;
  ASSERT_EQ(ports_[0]->transmit(0, &sent, 1), 1);
  while (poll() != 0) {
  }
  const auto got = received(1);
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0], header);
  EXPECT_EQ(rte_pktmbuf_mtod(got[0]->next, char*), payload.data());
  EXPECT_EQ(ports_[1]->counts().received_bytes, 1060u);
  rte_pktmbuf_free(got[0]);
}

TEST_F(SwitchForwardingTest, WithoutARateASlowReceiverHoldsItsSendersBackAndLosesNothing) {
  RingPortOptions shallow;
  shallow.uplink_depth = 64;
  shallow.downlink_depth = 16;
  EmulatedSwitchOptions options;
  options.egress_frames = 64;
  build(3, options, shallow);
  std::uint32_t sent = 0;
  // The receiver looks at nothing until the senders can send no more.
  for (int idle = 0; idle < 3;) {
    const bool accepted = send(sent % 2, {.to = 2, .number = sent});
    if (accepted) ++sent;
    const unsigned moved = poll();
    idle = accepted || moved != 0 ? 0 : idle + 1;
  }
  EXPECT_GT(sent, 64u);
  EXPECT_LT(sent, kPoolPackets);
  std::vector<std::uint32_t> got;
  do {
    const auto numbers = received_numbers(2);
    got.insert(got.end(), numbers.begin(), numbers.end());
  } while (poll() != 0);
  std::sort(got.begin(), got.end());
  std::vector<std::uint32_t> expected(sent);
  std::iota(expected.begin(), expected.end(), 0u);
  EXPECT_EQ(got, expected);
}

TEST_F(SwitchForwardingTest, AServerThatSleepsIsWokenWhenItsUplinkHasRoomAgain) {
  RingPortOptions shallow;
  shallow.uplink_depth = 1;
  build(2, {}, shallow);
  Doorbell at_server;
  ports_[0]->set_doorbells(0, nullptr, &at_server);
  ASSERT_TRUE(send(0, {.to = 1, .number = 0}));
  ASSERT_EQ(ports_[0]->transmit_room(0), 0u);
  at_server.prepare_wait();
  switch_->shard(0).poll(0);
  EXPECT_TRUE(at_server.finish_wait());
  EXPECT_EQ(ports_[0]->transmit_room(0), 1u);
  at_server.prepare_wait();
  switch_->shard(0).poll(0);
  EXPECT_FALSE(at_server.finish_wait()) << "nothing has changed";
  EXPECT_EQ(received_numbers(1), std::vector<std::uint32_t>{0});
}

TEST_F(SwitchForwardingTest, ASwitchThatSleepsIsWokenByItsServers) {
  RingPortOptions shallow;
  shallow.uplink_depth = 32;
  build(2, {}, shallow);
  Doorbell at_switch;
  for (const auto& port : ports_) port->set_doorbells(0, &at_switch, nullptr);
  std::atomic<bool> stop{false};
  std::thread poller([&] {
    SwitchShard& shard = switch_->shard(0);
    while (!stop.load()) {
      if (shard.poll(0) != 0) continue;
      at_switch.prepare_wait();
      const bool resting = shard.poll(0) == 0 && shard.next_event() == kNever && !stop.load();
      // Without a limit: a lost wake-up hangs the test.
      if (resting) wait_until_rung(at_switch);
      at_switch.finish_wait();
    }
  });
  constexpr std::uint32_t kFrames = 20'000;
  std::uint32_t sent = 0;
  std::vector<std::uint32_t> got;
  while (got.size() < kFrames) {
    if (sent < kFrames && send(0, {.to = 1, .number = sent})) {
      ++sent;
    } else {
      std::this_thread::yield();
    }
    const auto numbers = received_numbers(1);
    got.insert(got.end(), numbers.begin(), numbers.end());
  }
  stop.store(true);
  at_switch.ring();
  poller.join();
  EXPECT_TRUE(std::is_sorted(got.begin(), got.end()));
}

TEST_F(SwitchForwardingTest, PacketsInsideGoWithTheSwitch) {
  EmulatedSwitchOptions options;
  options.profile.bits_per_second = 1'000'000;
  options.profile.delay = 1'000'000;
  build(2, options);
  poll();
  Impairments all_late;
  all_late.reorder = 1;
  switch_->set_impairments(0, all_late);
  for (int i = 0; i < 20; ++i) send(0, {.to = 1});
  for (int i = 0; i < 6; ++i) {
    clock_.advance(1'000'000);
    poll();
  }
  // TearDown counts.
}

TEST_F(SwitchForwardingTest, PortsCountWhatWentThroughThem) {
  build(2, {});
  for (int i = 0; i < 5; ++i) send(0, {.to = 1, .bytes = 200});
  while (poll() != 0) {
  }
  received_numbers(1);
  EXPECT_EQ(ports_[0]->counts().sent_packets, 5u);
  EXPECT_EQ(ports_[0]->counts().sent_bytes, 1000u);
  EXPECT_EQ(ports_[1]->counts(0).received_packets, 5u);
  EXPECT_EQ(ports_[1]->counts(0).received_bytes, 1000u);
}

TEST(MacTable, FindsEveryAddressAndNoOther) {
  MacTable table;
  for (std::uint64_t server = 0; server < 4096; ++server) {
    table.add(mac_of(server * 3), static_cast<std::uint16_t>(server));
  }
  for (std::uint64_t server = 0; server < 3 * 4096; ++server) {
    const auto expected = static_cast<std::uint16_t>(server % 3 == 0 ? server / 3 : UINT16_MAX);
    ASSERT_EQ(table.find(mac_of(server)), expected);
  }
}

}  // namespace
}  // namespace gradcube::dataplane
