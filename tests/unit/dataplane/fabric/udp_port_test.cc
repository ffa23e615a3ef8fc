// Frames between ports that are sockets, on the loopback interface and as any user; what takes a
// network of one's own is in udp_way_test.cc.
#include "dataplane/fabric/udp/udp_port.h"

#include <algorithm>
#include <cstdint>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <sys/epoll.h>
#include <unistd.h>
#include <vector>

#include "control/base/errors.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/udp_port_fixture.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;

class UdpPortOfBothFamilies : public UdpPortTest, public testing::WithParamInterface<bool> {
 protected:
  void SetUp() override {
    UdpPortTest::SetUp();
    is_v6_ = GetParam();
    if (is_v6_ && !has_v6()) GTEST_SKIP() << "this host has no address ::1";
  }
};

INSTANTIATE_TEST_SUITE_P(Both, UdpPortOfBothFamilies, testing::Values(false, true),
                         [](const auto& info) { return info.param ? "IPv6" : "IPv4"; });

TEST_P(UdpPortOfBothFamilies, FramesOfAllLengthsArriveWholeHoweverTheyAreChained) {
  const auto from = port(0);
  const auto to = port(1);
  expect_frames_of_all_lengths_to_pass(
      *from, *to, {82, 96, 97, 1514, kMtu + kEthernetBytes},
      {.least_frame = 96, .least_header = 42, .most_header = 82, .most_ends = 2});
}

TEST_P(UdpPortOfBothFamilies, FramesThatTravelInFragmentsArriveWhole) {
  for (const std::uint32_t mtu : {1400U, 1500U, 4000U}) {
    datagram_mtu_ = mtu;
    const auto from = port(0);
    const auto to = port(1);
    const std::uint32_t full = kBodyAt + most_of_body(mtu, is_v6_);
    expect_frames_of_all_lengths_to_pass(
        *from, *to, {82, full, full + 1, 2 * full, kMtu + kEthernetBytes},
        {.least_frame = 96, .least_header = 42, .most_header = 82, .most_ends = 2});
    EXPECT_EQ(to->drop_counts(0).rx_refused + to->drop_counts(0).rx_unfinished, 0u);
  }
}

TEST_P(UdpPortOfBothFamilies, CongestionMarksPassAtBothEnds) {
  const auto own = port(1);
  const RawUdp other(address(0));
  unsigned sent = 0;
  for (const std::uint8_t marks : {0, 1, 2, 3}) {
    std::string whole = frame(500, 7);
    whole[15] = static_cast<char>(marks);
    whole[46] = 1;  // to another server than it comes from
    other.send(address(1), datagram_of(whole), marks);
    const Frames arrived = awaited(*own, 1);
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived[0][15], static_cast<char>(marks));
    protocol::ParsedFrame parsed;
    EXPECT_EQ(protocol::parse_frame(
                  {reinterpret_cast<const std::uint8_t*>(arrived[0].data()), arrived[0].size()},
                  arrived[0].size(), parsed),
              protocol::FrameError::none);
    EXPECT_EQ(parsed.congestion_marked, marks == 3);
    // Two with each, so that one of the trains has marks of its own.
    std::string back = frame(500, 8, 0, true);
    back[15] = static_cast<char>(marks);
    ASSERT_TRUE(send(*own, std::vector{in_one_segment(back), in_one_segment(back)}));
    for (int i = 0; i < 2; ++i) {
      const RawUdp::Datagram got = other.receive();
      EXPECT_EQ(got.bytes, datagram_of(back, static_cast<std::uint16_t>(sent++)));
      EXPECT_EQ(got.marks, marks);
    }
  }
}

TEST_P(UdpPortOfBothFamilies, EachFrameReachesTheQueueOfItsThread) {
  const auto from = port(0);
  for (const std::size_t queues : {2U, 4U, 7U}) {
    const auto to = port(1, {.pools = std::vector<PacketPool*>(queues, &buffers())});
    for (std::uint32_t thread = 0; thread < 65536; thread += 997) {
      const auto queue = static_cast<std::uint16_t>(thread % queues);
      const std::string whole = frame(82, thread, static_cast<std::uint16_t>(thread));
      ASSERT_TRUE(send(*from, Frames{whole}));
      ASSERT_EQ(awaited(*to, 1, nullptr, queue), Frames{whole}) << thread << " of " << queues;
    }
  }
}

TEST_F(UdpPortTest, ABurstForSeveralThreadsIsSpreadOverTheQueues) {
  constexpr std::uint16_t kQueues = 4;
  const auto from = port(0);
  const auto to = port(1, {.pools = std::vector<PacketPool*>(kQueues, &buffers())});
  std::vector<Frames> sent(kQueues);
  std::vector<rte_mbuf*> packets;
  for (std::uint16_t i = 0; i < kMostDatagrams; ++i) {
    const auto thread = static_cast<std::uint16_t>(i / 3);
    sent[thread % kQueues].push_back(frame(1514, i, thread));
    packets.push_back(in_one_segment(sent[thread % kQueues].back()));
  }
  ASSERT_TRUE(send(*from, packets));
  for (std::uint16_t queue = 0; queue < kQueues; ++queue) {
    EXPECT_EQ(awaited(*to, sent[queue].size(), nullptr, queue), sent[queue]) << queue;
  }
}

// Of frames that are one datagram, and that are several.
class BurstsToSeveralPeers : public UdpPortTest, public testing::WithParamInterface<unsigned> {};

INSTANTIATE_TEST_SUITE_P(Of, BurstsToSeveralPeers, testing::Values(0, 1500));

TEST_P(BurstsToSeveralPeers, ArriveInTheOrderOfEach) {
  datagram_mtu_ = GetParam();
  const auto from = port(0);
  const auto one = port(1);
  const auto other = port(2);
  std::mt19937_64 random(test_seed());
  for (int burst = 0; burst < 100; ++burst) {
    std::vector<rte_mbuf*> packets;
    Frames to_one;
    Frames to_other;
    const std::uint16_t count = from->transmit_room(0);
    for (std::uint32_t i = 0; i < count; ++i) {
      constexpr std::uint32_t kLengths[] = {82, 1514, 1514, 1514, 9014, 9014};
      std::string whole = frame(kLengths[random() % std::size(kLengths)], i);
      const bool is_other = random() % 3 == 0;
      if (is_other) std::copy_n(mac(2).begin(), 6, whole.begin());
      (is_other ? to_other : to_one).push_back(whole);
      packets.push_back(in_one_segment(whole));
    }
    ASSERT_EQ(count, datagram_mtu_ == 0 ? kMostDatagrams : kMostDatagrams / 7);
    ASSERT_EQ(from->transmit(0, packets.data(), count), count);
    ASSERT_EQ(awaited(*one, to_one.size()), to_one);
    const Frames arrived = awaited(*other, to_other.size());
    ASSERT_EQ(arrived.size(), to_other.size());
    for (std::size_t i = 0; i < arrived.size(); ++i) {
      EXPECT_EQ(arrived[i].substr(protocol::kOuterHeaderBytes),
                to_other[i].substr(protocol::kOuterHeaderBytes));
    }
  }
  EXPECT_EQ(from->drop_counts(0).tx_postponed + from->drop_counts(0).tx_failed, 0u);
}

// Older kernels cut no longer ones.
TEST_F(UdpPortTest, WhatLeavesToOnePeerAtOnceIsInTrainsOf63) {
  const auto from = port(0);
  const RawUdp to(address(1));
  to.receive_trains();
  const std::string whole = frame(200, 1);
  std::vector<rte_mbuf*> packets;
  for (unsigned i = 0; i < kMostDatagrams; ++i) packets.push_back(in_one_segment(whole));
  ASSERT_EQ(from->transmit(0, packets.data(), kMostDatagrams), kMostDatagrams);
  for (const unsigned datagrams : {63U, 63U, 63U, 63U, 63U, 63U, 6U}) {
    const RawUdp::Datagram train = to.receive();
    EXPECT_EQ(train.each, datagram_of(whole).size());
    EXPECT_EQ(train.bytes.size(), datagrams * train.each);
  }
}

TEST_F(UdpPortTest, DatagramsOfStrangersAreDroppedAndCounted) {
  const auto to = port(1);
  control::HostAddress other_port = address(0);
  other_port.udp_port += 1;
  // An address of nobody, one of a port that is no neighbour of this one, and its own host's.
  control::HostAddress own_host = address(1);
  own_host.udp_port += 1;
  std::uint64_t dropped = 0;
  for (const control::HostAddress& from : {address(9), other_port, own_host}) {
    const RawUdp stranger(from);
    stranger.send(address(1), datagram_of(frame(500, 7)));
    const auto from_peer = port(0);
    ASSERT_TRUE(send(*from_peer, Frames{frame(82, 1)}));
    EXPECT_EQ(awaited(*to, 1), Frames{frame(82, 1)}) << control::host_text(from);
    EXPECT_EQ(to->drop_counts(0).rx_strangers, ++dropped);
  }
  EXPECT_EQ(to->counts().received_packets, dropped);
}

TEST_F(UdpPortTest, AFloodOfStrangersHidesNoFrame) {
  const auto to = port(1);
  const RawUdp stranger(address(9));
  const RawUdp peer(address(0));
  for (int i = 0; i < 100; ++i) stranger.send(address(1), "whatever");
  peer.send(address(1), datagram_of(frame(82, 1)));
  const RawUdp other(address(2));
  peer.send(address(2), "behind all of them");  // as the kernel may bring them some time later
  EXPECT_EQ(other.receive().bytes, "behind all of them");
  EXPECT_TRUE(received(*to).empty());
  EXPECT_EQ(to->next_event(0), clock_.now() + UdpPort::kRetry)
      << "the descriptor announces nothing that is there already";
  EXPECT_EQ(awaited(*to, 1), Frames{frame(82, 1)});
  EXPECT_EQ(to->drop_counts(0).rx_strangers, 100u);
  EXPECT_EQ(to->next_event(0), kNever);
}

TEST_F(UdpPortTest, FramesForNobodyOfWrongLengthAndForAllAreDropped) {
  const auto from = port(0);
  const auto to = port(1);
  std::string for_nobody = frame(500, 1);
  std::copy_n(mac(9).begin(), 6, for_nobody.begin());
  std::string for_itself = frame(500, 1);
  std::copy_n(mac(0).begin(), 6, for_itself.begin());
  std::string for_all = frame(500, 1);
  std::fill_n(for_all.begin(), 6, '\xff');
  PacketPool large({.name = "large", .count = 3, .frame_bytes = 9100, .cache = 0});
  rte_mbuf* too_long = large.allocate();
  const std::string long_frame = frame(kMtu + kEthernetBytes + 1, 1);
  std::copy(long_frame.begin(), long_frame.end(),
            rte_pktmbuf_append(too_long, static_cast<std::uint16_t>(long_frame.size())));
  rte_mbuf* in_many_parts = chained(frame(500, 1), 82, {100, 200, 300, 400, 500});
  rte_mbuf* short_begin = chained(frame(500, 1), 41, {500});
  const std::vector<rte_mbuf*> packets{in_one_segment(for_nobody),
                                       in_one_segment(for_itself),
                                       in_one_segment(for_all),
                                       too_long,
                                       in_many_parts,
                                       short_begin,
                                       in_one_segment("short"),
                                       in_one_segment(frame(500, 2))};
  ASSERT_TRUE(send(*from, packets));
  EXPECT_EQ(awaited(*to, 1), Frames{frame(500, 2)});
  EXPECT_EQ(from->drop_counts(0).tx_refused, 6u);
  EXPECT_EQ(from->counts().sent_packets, 1u);
}

TEST_F(UdpPortTest, DatagramsStayInTheSocketUntilThereIsABuffer) {
  PacketPool few({.name = "few", .count = 3, .frame_bytes = kMtu + kEthernetBytes, .cache = 0});
  const auto from = port(0);
  const auto to = port(1, {.pools = {&few}});
  const Frames sent = frames(10, 4000);
  ASSERT_TRUE(send(*from, sent));
  Frames arrived;
  while (arrived.size() < sent.size()) {
    const std::size_t count = std::min<std::size_t>(3, sent.size() - arrived.size());
    const std::vector<rte_mbuf*> burst = awaited_packets(*to, count);
    ASSERT_EQ(burst.size(), count);
    if (count == 3) {
      EXPECT_TRUE(lacks_a_buffer_soon(*to));
      EXPECT_EQ(to->next_event(0), clock_.now() + UdpPort::kRetry);
    }
    for (rte_mbuf* packet : burst) {
      arrived.emplace_back(rte_pktmbuf_mtod(packet, const char*), packet->pkt_len);
      rte_pktmbuf_free(packet);
    }
  }
  EXPECT_EQ(arrived, sent);
  EXPECT_EQ(to->drop_counts(0).rx_buffer_full, 0u);
}

TEST_F(UdpPortTest, TheKernelCountsDatagramsForWhichTheSocketHasNoRoom) {
  const auto to = port(1);
  const RawUdp peer(address(0));
  const std::string datagram = datagram_of(frame(kMtu + kEthernetBytes, 1));
  std::uint64_t sent = 0;
  while (to->drop_counts(0).rx_buffer_full == 0 && sent < 20'000) {
    peer.send(address(1), datagram);
    ++sent;
  }
  ASSERT_GT(to->drop_counts(0).rx_buffer_full, 0u);
  const std::size_t arrived = awaited(*to, sent - to->drop_counts(0).rx_buffer_full).size();
  EXPECT_EQ(arrived + to->drop_counts(0).rx_buffer_full, sent);
  peer.send(address(1), datagram_of(frame(82, 2)));
  EXPECT_EQ(awaited(*to, 1), Frames{frame(82, 2)}) << "it goes on";
}

TEST_F(UdpPortTest, TheDescriptorAnnouncesEachFrame) {
  const auto from = port(0);
  const auto to = port(1);
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
    // Some are left, and the next one is announced all the same.
    if (i % 3 == 2) {
      EXPECT_EQ(awaited(*to, 3).size(), 3u);
    }
  }
  close(epoll);
}

TEST_F(UdpPortTest, WithARateABurstPassesAndThenNothing) {
  const auto from = port(0, {.bits_per_second = 100'000'000});
  const auto to = port(1);
  Frames sent;
  while (from->transmit_room(0) != 0 && sent.size() < 100) {
    sent.push_back(frame(kMtu + kEthernetBytes, static_cast<std::uint32_t>(sent.size())));
    ASSERT_TRUE(send(*from, Frames{sent.back()}));
  }
  EXPECT_EQ(sent.size(), 2u);
  EXPECT_GT(from->next_event(0), clock_.now());
  EXPECT_NE(from->next_event(0), kNever);
  EXPECT_EQ(awaited(*to, sent.size()), sent);
}

TEST_F(UdpPortTest, IsRefusedAtAnAddressThatThisHostDoesNotHaveOrAnotherHas) {
  const auto refusal = [this](const control::HostAddress& at, std::size_t queues) {
    return control::message_of<control::SetupError>([&] {
      UdpPortOptions options{.at = at, .link = link(0)};
      options.pools.assign(queues, &buffers());
      UdpPort refused(options, clock_);
    });
  };
  control::HostAddress foreign = address(0);
  foreign.bytes = {192, 0, 2, 77};  // set aside for documents
  EXPECT_THAT(refusal(foreign, 1),
              HasSubstr("this host does not have the address 192.0.2.77: it has "));
  const auto first = port(0);
  EXPECT_THAT(refusal(address(0), 1), HasSubstr("another process of this host has 127."));
  EXPECT_THAT(refusal(address(0), 2), HasSubstr("another process of this host has 127."));
  const auto shared = port(1, {.pools = {&buffers(), &buffers()}});
  EXPECT_THAT(refusal(address(1), 1), HasSubstr("another process of this host has 127."));
  EXPECT_THAT(refusal(address(1), 2), HasSubstr("another process of this host has 127."));
}

}  // namespace
}  // namespace gradcube::dataplane
