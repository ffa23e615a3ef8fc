// Frames between two ports over a veth.
#include "dataplane/fabric/kernel/packet_port.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <sys/epoll.h>
#include <vector>

#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/packet_port_fixture.h"

namespace gradcube::dataplane {
namespace {

TEST_F(PacketPortTest, FramesOfAllLengthsArriveWholeHoweverTheyAreChained) {
  const auto from = port("a");
  const auto to = port("b");
  expect_frames_of_all_lengths_to_pass(
      *from, *to, {82, 95, 96, 97, 1514, kMtu + kEthernetBytes},
      {.least_frame = 82, .least_header = 0, .most_header = 82, .most_ends = 4});
}

TEST_F(PacketPortTest, ABurstIsAcceptedAsFarAsThereIsRoomAndArrivesInOrder) {
  const auto from = port("a", {.transmit_depth = 8});
  const auto to = port("b");
  const std::uint16_t room = from->transmit_room(0);
  ASSERT_GE(room, 8u);
  ASSERT_LT(room, 100u);
  const Frames sent = frames(100, 9014);
  std::vector<rte_mbuf*> packets;
  for (const std::string& whole : sent) packets.push_back(in_one_segment(whole));
  ASSERT_EQ(from->transmit(0, packets.data(), 100), room);
  EXPECT_EQ(packets_in_use(buffers()), 100u - room) << "what is accepted belongs to the port";
  packets.erase(packets.begin(), packets.begin() + room);
  ASSERT_TRUE(send(*from, packets));
  EXPECT_EQ(awaited(*to, 100, from.get()), sent);
}

TEST_F(PacketPortTest, AServerDoesNotReceiveWhatItSends) {
  const auto a = port("a");
  const auto b = port("b");
  for (std::uint32_t i = 0; i < 50; ++i) {
    ASSERT_TRUE(send(*a, Frames{frame(1514, i)}));
    ASSERT_TRUE(send(*b, Frames{frame(1514, i, 0, true)}));
    EXPECT_EQ(awaited(*a, 1), Frames{frame(1514, i, 0, true)});
    EXPECT_EQ(awaited(*b, 1), Frames{frame(1514, i)});
  }
  EXPECT_EQ(a->counts().received_packets, 50u);
  EXPECT_EQ(b->counts().received_packets, 50u);
}

TEST_F(PacketPortTest, FramesStayInTheRingUntilThereIsABuffer) {
  PacketPool few({.name = "few", .count = 3, .frame_bytes = kMtu + kEthernetBytes, .cache = 0});
  const auto from = port("a");
  const auto to = port("b", {.pools = {&few}});
  const Frames sent = frames(10, 4000);
  ASSERT_TRUE(send(*from, sent));
  Frames arrived;
  while (arrived.size() < sent.size()) {
    const std::size_t count = std::min<std::size_t>(3, sent.size() - arrived.size());
    const std::vector<rte_mbuf*> burst = awaited_packets(*to, count);
    ASSERT_EQ(burst.size(), count);
    const bool more = arrived.size() + count < sent.size();
    if (more) {
      EXPECT_TRUE(lacks_a_buffer_soon(*to));
    }
    EXPECT_EQ(to->next_event(0), more ? clock_.now() + PacketPort::kRetry : kNever);
    for (rte_mbuf* packet : burst) {
      arrived.emplace_back(rte_pktmbuf_mtod(packet, const char*), packet->pkt_len);
      rte_pktmbuf_free(packet);
    }
  }
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(to->drop_counts(0).rx_ring_full, 0u);
}

TEST_F(PacketPortTest, TheKernelCountsFramesForWhichThereIsNoSlot) {
  const auto from = port("a");
  const auto to = port("b", {.receive_depth = 16});
  const Frames sent = frames(200, 1000);
  std::uint64_t dropped = 0;
  for (int i = 0; i < 3; ++i) {
    const std::uint64_t before = dropped;
    ASSERT_TRUE(send(*from, sent));
    std::size_t arrived = 0;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (dropped == before && std::chrono::steady_clock::now() < end) {
      dropped = to->drop_counts(0).rx_ring_full;  // before the ring is made empty
    }
    while (arrived + dropped - before < sent.size() && std::chrono::steady_clock::now() < end) {
      arrived += received(*to).size();
      dropped = to->drop_counts(0).rx_ring_full;
    }
    EXPECT_EQ(arrived + dropped - before, sent.size());
    EXPECT_GT(dropped, before);
    ASSERT_TRUE(send(*from, Frames{sent.back()}));
    EXPECT_EQ(awaited(*to, 1), Frames{sent.back()}) << "the ring goes on";
  }
}

TEST_F(PacketPortTest, FramesLongerThanTheReceiversMtuAreDroppedAndCounted) {
  const auto from = port("a");
  auto to = port("b", {.mtu = 1500});
  EXPECT_EQ(to->mtu(), 1500u);
  // One that does not fit into a slot, one that fits into neither slot nor buffer, and a good one.
  const Frames sent{frame(1518, 0), frame(1600, 1), frame(9014, 2), frame(1514, 3)};
  ASSERT_TRUE(send(*from, sent));
  const Frames arrived = awaited(*to, 2);
  EXPECT_EQ(arrived.back(), sent[3]);
  EXPECT_EQ(arrived.size() + to->drop_counts(0).rx_too_long, sent.size());
  for (const std::string& whole : arrived) {
    EXPECT_NE(std::find(sent.begin(), sent.end(), whole), sent.end()) << "a part of a frame";
  }
  to.reset();
  PacketPool small({.name = "small", .count = 15, .frame_bytes = 1514, .cache = 0});
  const auto narrow = port("b", {.mtu = 1500, .pools = {&small}});
  ASSERT_TRUE(send(*from, sent));
  EXPECT_EQ(awaited(*narrow, 1), Frames{sent[3]});
  EXPECT_EQ(narrow->drop_counts(0).rx_too_long, 3u);
  EXPECT_EQ(narrow->counts().received_packets, 1u);
}

TEST_F(PacketPortTest, FramesThatTheInterfaceCannotCarryAreDroppedAndCounted) {
  const auto from = port("a", {.mtu = 1500});
  const auto to = port("b");
  const Frames sent{frame(1515, 0), frame(1514, 1), frame(9014, 2), frame(200, 3)};
  ASSERT_TRUE(send(*from, sent));
  ASSERT_TRUE(send(*from, Frames{std::string(13, 'x')}));
  EXPECT_EQ(awaited(*to, 2), (Frames{sent[1], sent[3]}));
  EXPECT_EQ(from->drop_counts(0).tx_refused, 3u);
  EXPECT_EQ(from->counts().sent_packets, 2u);
}

TEST_F(PacketPortTest, TheDescriptorAnnouncesEachFrame) {
  const auto from = port("a");
  const auto to = port("b");
  // As a poller watches it.
  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{.events = EPOLLIN | EPOLLET, .data = {}};
  ASSERT_EQ(epoll_ctl(epoll, EPOLL_CTL_ADD, to->wake_descriptor(0), &event), 0);
  const auto announced = [&](std::chrono::milliseconds patience) {
    return epoll_wait(epoll, &event, 1, static_cast<int>(patience.count())) == 1;
  };
  EXPECT_FALSE(announced(std::chrono::milliseconds(0)));
  EXPECT_EQ(to->next_event(0), kNever);
  for (std::uint32_t i = 0; i < 9; ++i) {
    ASSERT_TRUE(send(*from, Frames{frame(500, i)}));
    ASSERT_TRUE(announced(kPatience));
    EXPECT_FALSE(announced(std::chrono::milliseconds(0)));
    // Some are left, and the next one is announced all the same.
    if (i % 3 == 2) {
      EXPECT_EQ(awaited(*to, 3).size(), 3u);
    }
  }
  close(epoll);
}

}  // namespace
}  // namespace gradcube::dataplane
