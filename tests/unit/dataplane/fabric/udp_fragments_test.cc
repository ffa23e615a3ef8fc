// Frames that are longer than a datagram: how they are cut, and how they are put together again
// from what comes, whoever sent it.
#include <algorithm>
#include <cstdint>
#include <gtest/gtest.h>
#include <random>
#include <string>
#include <vector>

#include "dataplane/fabric/udp/frame_assembly.h"
#include "dataplane/fabric/udp/udp_port.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/fabric/udp_port_fixture.h"

namespace gradcube::dataplane {
namespace {

class UdpFragmentsTest : public UdpPortTest {};

TEST_F(UdpFragmentsTest, FramesOfOneLengthLeaveInOneTrainOfTheirFragments) {
  datagram_mtu_ = 1500;
  const auto from = port(0);
  const RawUdp to(address(1));
  to.receive_trains();
  // The last fragment of each is filled up.
  const std::string whole = frame(kBodyAt + 5 * 1400 + 3, 1);
  std::vector<rte_mbuf*> packets;
  for (unsigned i = 0; i < 7; ++i) packets.push_back(in_one_segment(whole));
  ASSERT_EQ(from->transmit(0, packets.data(), 7), 7u);
  std::string all;
  for (std::uint16_t i = 0; i < 7; ++i) {
    for (const std::string& datagram : datagrams_of(whole, 5, i)) all += datagram;
  }
  const RawUdp::Datagram train = to.receive();
  EXPECT_EQ(train.each, kFragmentHeaderBytes + 1401);
  EXPECT_EQ(train.bytes, all);
}

TEST_F(UdpFragmentsTest, FragmentsMayComeInAnyOrderAndTwice) {
  const std::uint64_t seed = test_seed();
  SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
  std::mt19937_64 random(seed);
  const auto to = port(1);
  const RawUdp peer(address(0));
  for (std::uint16_t i = 0; i < 100; ++i) {
    // Two frames at once, of any length.
    std::vector<std::string> datagrams;
    Frames sent;
    for (const std::uint16_t number : {i, static_cast<std::uint16_t>(i + 1000)}) {
      sent.push_back(frame(82 + static_cast<std::uint32_t>(random() % 8932), number, number % 3));
      const auto fragments = static_cast<unsigned>(2 + random() % 6);
      for (const std::string& datagram : datagrams_of(sent.back(), fragments, number)) {
        datagrams.push_back(datagram);
        // But for its first: so none is whole twice.
        if (datagram[6] != 0 && random() % 2 == 0) datagrams.insert(datagrams.begin(), datagram);
      }
      std::shuffle(datagrams.begin(), datagrams.end(), random);
    }
    for (const std::string& datagram : datagrams) peer.send(address(1), datagram);
    Frames arrived = awaited(*to, 2);
    std::sort(arrived.begin(), arrived.end());
    std::sort(sent.begin(), sent.end());
    ASSERT_EQ(arrived, sent) << i;
  }
}

TEST_F(UdpFragmentsTest, AFrameThatLacksAFragmentIsDroppedWhenLaterOnesLackSomeToo) {
  const auto to = port(1);
  const RawUdp peer(address(0));
  constexpr unsigned kLost = 20;
  for (std::uint16_t number = 0; number < kLost; ++number) {
    std::vector<std::string> datagrams = datagrams_of(frame(9014, number), 6, number);
    datagrams.erase(datagrams.begin() + number % 6);
    for (const std::string& datagram : datagrams) peer.send(address(1), datagram);
    const std::string whole = frame(5000, number);
    for (const std::string& datagram : datagrams_of(whole, 4, number + 100)) {
      peer.send(address(1), datagram);
    }
    ASSERT_EQ(awaited(*to, 1), Frames{whole});
    EXPECT_LE(packets_in_use(buffers()), FrameAssembly::kAtOnce);
  }
  EXPECT_EQ(to->drop_counts(0).rx_unfinished, kLost - FrameAssembly::kAtOnce + 1)
      << "whole ones need a place, too";
}

TEST_F(UdpFragmentsTest, FragmentsOfOneNumberThatCannotBeOfOneFrameAreNotMixed) {
  const auto to = port(1);
  const RawUdp peer(address(0));
  const std::string whole = frame(5000, 1);
  const std::vector<std::string> datagrams = datagrams_of(whole, 4, 7);
  peer.send(address(1), datagrams[0]);
  peer.send(address(1), datagrams_of(frame(5000, 2), 5, 7)[1]);     // another count
  peer.send(address(1), datagrams_of(frame(5004, 2), 4, 7)[1]);     // another length
  peer.send(address(1), datagrams_of(frame(5000, 2, 1), 4, 7)[1]);  // another thread
  for (unsigned i = 1; i < 4; ++i) peer.send(address(1), datagrams[i]);
  EXPECT_EQ(awaited(*to, 1), Frames{whole});
}

TEST_F(UdpFragmentsTest, AFrameIsMarkedIfOneOfItsFragmentsIs) {
  const auto to = port(1);
  const RawUdp peer(address(0));
  for (unsigned marked = 0; marked < 4; ++marked) {
    const std::string whole = frame(5000, marked);
    const auto number = static_cast<std::uint16_t>(marked);
    const std::vector<std::string> datagrams = datagrams_of(whole, 4, number);
    for (unsigned i = 0; i < 4; ++i) peer.send(address(1), datagrams[i], i == marked ? 3 : 2);
    const Frames arrived = awaited(*to, 1);
    ASSERT_EQ(arrived.size(), 1u);
    EXPECT_EQ(arrived[0][kTosAt], 3);
    EXPECT_EQ(arrived[0].substr(kBodyAt), whole.substr(kBodyAt));
  }
}

TEST_F(UdpFragmentsTest, DatagramsThatAreNoFragmentsAreDroppedOrLeftToTheEngine) {
  const auto to = port(1);
  const RawUdp peer(address(0));
  const auto datagram = [](std::uint32_t length, unsigned place, unsigned of, std::size_t body) {
    std::string bytes(kFragmentHeaderBytes + body, 'x');
    put(bytes, 4, length);
    bytes[6] = static_cast<char>(place);
    bytes[7] = static_cast<char>(of);
    return bytes;
  };
  constexpr std::uint32_t kLongest = kMtu + kEthernetBytes - kBodyAt;
  const std::vector<std::string> refused{"",
                                         "sevenby",
                                         datagram(7, 0, 1, 0),  // shorter than its header
                                         datagram(9, 0, 1, 0),  // cut
                                         datagram(9, 0, 1, 2),  // longer than it says
                                         datagram(8 + kLongest + 1, 0, 1, kLongest + 1),
                                         datagram(8 + kLongest + 1, 0, 7, (kLongest + 7) / 7),
                                         datagram(UINT16_MAX, 0, 7, 60'000),
                                         datagram(108, 0, 0, 100),
                                         datagram(108, 0, kMostFragments + 1, 13),
                                         datagram(108, 0, 255, 1),
                                         datagram(108, 1, 1, 100),
                                         datagram(108, 4, 4, 25),
                                         datagram(108, 255, 4, 25),
                                         datagram(11, 6, 7, 1),  // behind the end of the body
                                         datagram(108, 3, 4, 24)};
  for (const std::string& bytes : refused) peer.send(address(1), bytes);
  peer.send(address(1), datagram(8, 0, 1, 0));
  peer.send(address(1), datagram(8 + kLongest, 0, 1, kLongest));
  const Frames arrived = awaited(*to, 2);
  ASSERT_EQ(arrived.size(), 2u);
  EXPECT_EQ(arrived[0].size(), kBodyAt);
  EXPECT_EQ(arrived[1].size(), kMtu + kEthernetBytes);
  EXPECT_EQ(to->drop_counts(0).rx_refused, refused.size());
  for (const std::string& whole : arrived) {
    protocol::ParsedFrame parsed;
    EXPECT_NE(
        protocol::parse_frame({reinterpret_cast<const std::uint8_t*>(whole.data()), whole.size()},
                              whole.size(), parsed),
        protocol::FrameError::none);
  }
}

TEST_F(UdpFragmentsTest, FragmentsReachTheQueueOfTheirFramesThread) {
  datagram_mtu_ = 1500;
  constexpr std::uint16_t kQueues = 4;
  const auto from = port(0);
  const auto to = port(1, {.pools = std::vector<PacketPool*>(kQueues, &buffers())});
  for (std::uint16_t thread = 0; thread < 2 * kQueues; ++thread) {
    const std::string whole = frame(9014, thread, thread);
    ASSERT_TRUE(send(*from, Frames{whole}));
    ASSERT_EQ(awaited(*to, 1, nullptr, thread % kQueues), Frames{whole}) << thread;
  }
}

}  // namespace
}  // namespace gradcube::dataplane
