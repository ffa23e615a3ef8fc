// Which frames a port lets in, and on which queue they arrive.
#include <cstdint>
#include <functional>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/fabric/kernel/packet_port.h"
#include "tests/unit/dataplane/fabric/packet_port_fixture.h"

namespace gradcube::dataplane {
namespace {

class PacketSteeringTest : public PacketPortTest {
 protected:
  static std::string to_all(const std::string& frame) {
    return std::string(6, '\xff') + frame.substr(6);
  }

  // Sends frames of these threads and finds each on its queue. `send_one` accepts all.
  void expect_each_on_its_queue(PacketPort& to, std::uint32_t first, std::uint32_t count,
                                const std::function<void(const std::string&)>& send_one) {
    std::vector<Frames> sent(to.queues());
    for (std::uint32_t thread = first; thread < first + count; ++thread) {
      const std::string whole = frame(82, thread, static_cast<std::uint16_t>(thread));
      sent[thread % to.queues()].push_back(whole);
      send_one(whole);
    }
    for (std::uint16_t queue = 0; queue < to.queues(); ++queue) {
      ASSERT_EQ(awaited(to, sent[queue].size(), nullptr, queue), sent[queue])
          << "queue " << queue << ", threads from " << first;
    }
  }
};

TEST_F(PacketSteeringTest, AFrameOfAnySourcePortReachesTheQueueOfItsThread) {
  const auto from = port("a");
  for (const std::size_t queues : {1U, 4U, 7U}) {
    SCOPED_TRACE(std::to_string(queues) + " queues");
    const auto to = port_of_queues("b", queues);
    for (std::uint32_t thread = 0; thread <= UINT16_MAX; thread += 512) {
      expect_each_on_its_queue(*to, thread, 512, [&](const std::string& whole) {
        ASSERT_TRUE(send(*from, Frames{whole}));
      });
      if (HasFatalFailure()) return;
    }
    EXPECT_EQ(to->counts().received_packets, 65536u);
  }
}

// The kernel lays out a frame of another sender differently in its memory.
TEST_F(PacketSteeringTest, FramesOfAnotherKindOfSenderReachTheirQueuesToo) {
  const RawSocket from("a");
  const auto to = port_of_queues("b", 4);
  expect_each_on_its_queue(*to, 0, 128, [&](const std::string& whole) { from.send(whole); });
}

TEST_F(PacketSteeringTest, FramesReachTheirQueuesAfterTheInterfaceWasDown) {
  const auto from = port("a");
  const auto to = port_of_queues("b", 4);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(run("ip link set dev b down"));
    connect();
    expect_each_on_its_queue(
        *to, 0, 128, [&](const std::string& whole) { ASSERT_TRUE(send(*from, Frames{whole})); });
  }
}

TEST_F(PacketSteeringTest, TwoPortsOfAProcessGetTheirOwnFrames) {
  const auto a = port_of_queues("a", 2);
  const auto b = port_of_queues("b", 2);
  for (std::uint16_t thread = 0; thread < 8; ++thread) {
    const std::uint16_t queue = thread % 2;
    ASSERT_TRUE(send(*a, Frames{frame(200, thread, thread)}, queue));
    ASSERT_TRUE(send(*b, Frames{frame(200, thread, thread, true)}, queue));
    EXPECT_EQ(awaited(*a, 1, nullptr, queue), Frames{frame(200, thread, thread, true)});
    EXPECT_EQ(awaited(*b, 1, nullptr, queue), Frames{frame(200, thread, thread)});
  }
}

TEST_F(PacketSteeringTest, ForeignFramesAreNotReceived) {
  const RawSocket from("a");
  const auto to = port("b");
  const auto changed = [&](std::size_t at, std::uint32_t value16) {
    std::string whole = frame(500, 7);
    put(whole, at, value16);
    return whole;
  };
  constexpr std::size_t kIp = kEthernetBytes;
  constexpr std::size_t kUdp = kIp + kIpv4Bytes;
  std::string tagged = frame(500, 7);
  tagged.insert(12, std::string("\x81\x00\x00\x05", 4));
  const std::vector<std::pair<std::string, std::string>> foreign{
      {"IPv6", changed(12, 0x86DD)},
      {"ARP", changed(12, 0x0806)},
      {"of a VLAN", tagged},
      {"with IP options", changed(kIp, 0x4600)},
      {"a first fragment", changed(kIp + 6, 0x2000)},
      {"a later fragment", changed(kIp + 6, 0x0008)},
      {"TCP", changed(kIp + 8, 0x4006)},
      {"to another port", changed(kUdp + 2, protocol::kUdpPort + 1)},
      {"to another host", changed(4, 0x1234)},
      {"to a group", "\x01\x00\x5e\x00\x00\x01" + frame(500, 7).substr(6)},
      {"to all hosts, to another port", to_all(changed(kUdp + 2, protocol::kUdpPort + 1))},
      {"to all hosts of a VLAN", to_all(tagged)},
      {"to all hosts, ARP", to_all(changed(12, 0x0806))},
      {"to nearly all hosts", std::string(5, '\xff') + '\xfe' + frame(500, 7).substr(6)},
      {"that ends before its port", frame(500, 7).substr(0, kUdp + 2)},
  };
  for (const auto& [what, whole] : foreign) {
    from.send(whole);
    const std::string good = frame(82, 1);
    from.send(good);
    EXPECT_EQ(awaited(*to, 1), Frames{good}) << "a frame " << what << " was received";
  }
  std::string priority = frame(500, 7);
  priority.insert(12, std::string("\x81\x00\xe0\x00", 4));
  from.send(priority);
  EXPECT_EQ(awaited(*to, 1), Frames{frame(500, 7)}) << "a priority is no VLAN";
  EXPECT_TRUE(received(*to).empty());
}

// A port that is cabled wrongly hears nothing else of those that it is cabled to.
TEST_F(PacketSteeringTest, FramesToAllHostsAreReceivedAndAPortsOwnAreNot) {
  const RawSocket from("a");
  const std::string whole = to_all(frame(500, 7));
  for (const bool own_mac : {false, true}) {
    PacketPortOptions options;
    if (own_mac) options.mac = {0x02, 0x47, 1, 0, 0, 7};
    const auto to = port("b", options);
    from.send(whole);
    EXPECT_EQ(awaited(*to, 1), Frames{whole});
    const auto back = port("a");
    ASSERT_TRUE(send(*to, Frames{whole}));
    EXPECT_EQ(awaited(*back, 1), Frames{whole});
    EXPECT_TRUE(received(*to).empty()) << "what it has sent itself";
  }
}

TEST_F(PacketSteeringTest, FramesToAllHostsOfAVlanAreNotForAMacOfItsOwn) {
  const RawSocket from("a");
  const auto to = port("b", {.mac = {0x02, 0x47, 1, 0, 0, 7}});
  std::string tagged = frame(500, 7);
  tagged.insert(12, std::string("\x81\x00\x00\x05", 4));
  from.send(to_all(tagged));
  const std::string good = to_all(frame(82, 1));
  from.send(good);
  EXPECT_EQ(awaited(*to, 1), Frames{good});
}

TEST_F(PacketSteeringTest, FramesForAMacOfItsOwnAreReceivedWhileThePortLives) {
  const RawSocket from("a");
  const std::array<std::uint8_t, 6> own{0x02, 0x47, 1, 0, 0, 7};
  std::string whole = frame(500, 7);
  std::copy(own.begin(), own.end(), whole.begin());
  {
    const auto to = port("b", {.mac = own});
    EXPECT_EQ(to->mac(), own);
    from.send(frame(500, 3));
    from.send(whole);
    EXPECT_EQ(awaited(*to, 1), Frames{whole});
    EXPECT_TRUE(received(*to).empty()) << "what is for the interface's own MAC";
  }
  EXPECT_EQ(find_network_interface("b").mac, b_.mac);
}

}  // namespace
}  // namespace gradcube::dataplane
