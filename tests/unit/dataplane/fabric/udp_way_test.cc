// Ports that are sockets where the way between them changes: in a network namespace of the test's
// own, whose loopback interface it may change.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/fabric/udp/udp_port.h"
#include "tests/unit/control/message.h"
#include "tests/unit/dataplane/fabric/network_namespace.h"
#include "tests/unit/dataplane/fabric/udp_port_fixture.h"

namespace gradcube::dataplane {
namespace {

using testing::HasSubstr;

class UdpWayTest : public UdpPortTest {
 protected:
  void SetUp() override {
    UdpPortTest::SetUp();
    namespace_.emplace();
    if (!namespace_->refusal().empty()) {
      GTEST_SKIP() << "this process may not make a network namespace: " << namespace_->refusal();
    }
    ASSERT_TRUE(run("ip link set dev lo mtu 65535 up")) << "is iproute2 installed?";
  }
  void TearDown() override {
    UdpPortTest::TearDown();
    namespace_.reset();
  }

 private:
  std::optional<NetworkNamespace> namespace_;
};

TEST_F(UdpWayTest, AnMtuThatAnInterfaceDoesNotCarryIsRefused) {
  ASSERT_TRUE(run("ip link set dev lo mtu 9007"));
  EXPECT_THAT(
      control::message_of<control::SetupError>([this] { port(0); }),
      HasSubstr("carries IP packets of at most 9007 bytes, and those of the cluster have up to "
                "9008: expected --mtu 9007, or as much in [link]"));
  ASSERT_TRUE(run("ip link set dev lo mtu 9008"));
  const auto from = port(0);
  const auto to = port(1);
  const std::string longest = frame(kMtu + kEthernetBytes, 1);
  ASSERT_TRUE(send(*from, Frames{longest}));
  EXPECT_EQ(awaited(*to, 1), Frames{longest});
}

TEST_F(UdpWayTest, AWayThatCarriesLessThanBeforeIsNamed) {
  const auto from = port(0);
  const auto to = port(1);
  ASSERT_TRUE(run("ip link set dev lo mtu 1500"));
  const std::vector<rte_mbuf*> burst{in_one_segment(frame(9014, 1)), in_one_segment(frame(9014, 2)),
                                     in_one_segment(frame(82, 3)), in_one_segment(frame(1514, 4)),
                                     in_one_segment(frame(1500, 5))};
  ASSERT_TRUE(send(*from, burst));
  EXPECT_EQ(awaited(*to, 2), (Frames{frame(82, 3), frame(1500, 5)}));
  EXPECT_EQ(from->drop_counts(0).tx_too_long, 3u);
  EXPECT_EQ(from->problem(), "");
  from->look();
  EXPECT_THAT(from->problem(), HasSubstr("carries IP packets of at most 1500 bytes"));
  from->look();
  EXPECT_EQ(from->problem(), "") << "nothing was refused since";
}

TEST_F(UdpWayTest, NothingOfAFrameArrivesWhoseFragmentsAreTooLong) {
  datagram_mtu_ = 1500;
  const auto from = port(0);
  const auto to = port(1);
  ASSERT_TRUE(run("ip link set dev lo mtu 1300"));
  ASSERT_TRUE(send(*from, std::vector{in_one_segment(frame(9014, 1)), in_one_segment(frame(82, 2)),
                                      in_one_segment(frame(1500, 3))}));
  EXPECT_EQ(awaited(*to, 1), Frames{frame(82, 2)});
  EXPECT_EQ(from->drop_counts(0).tx_too_long, 2u) << "frames, not datagrams";
}

TEST_F(UdpWayTest, APortGoesOnWhenAWayIsThereAgain) {
  const auto from = port(0);
  const auto to = port(1);
  ASSERT_TRUE(run("ip addr del 127.0.0.1/8 dev lo"));
  ASSERT_TRUE(send(*from, frames(5, 500)));
  EXPECT_EQ(from->drop_counts(0).tx_failed, 5u);
  from->look();
  EXPECT_THAT(from->problem(), HasSubstr("nothing can be sent from 127."));
  ASSERT_TRUE(run("ip addr add 127.0.0.1/8 dev lo"));
  ASSERT_TRUE(send(*from, frames(5, 500)));
  EXPECT_EQ(awaited(*to, 5), frames(5, 500));
}

TEST_F(UdpWayTest, WhatTheKernelDoesNotTakeStaysInThePort) {
  const auto from = port(0);
  const auto to = port(1);
  // Two frames pass, and the next one a minute later.
  ASSERT_TRUE(run("tc qdisc add dev lo root tbf rate 1kbit burst 20k limit 100mb"))
      << "is iproute2 installed?";
  std::uint32_t sent = 0;
  while (from->transmit_room(0) != 0 && sent < 20'000) {
    rte_mbuf* packet = in_one_segment(frame(9014, sent++));
    ASSERT_EQ(from->transmit(0, &packet, 1), 1u);
  }
  ASSERT_LT(sent, 20'000u);
  EXPECT_EQ(from->drop_counts(0).tx_postponed, 1u);
  EXPECT_EQ(packets_in_use(buffers()), 1u);
  EXPECT_EQ(from->next_event(0), clock_.now() + UdpPort::kRetry);
  turn(*from);
  EXPECT_EQ(from->transmit_room(0), 0u);
  // What lies there is lost, and the port goes on.
  ASSERT_TRUE(run("tc qdisc del dev lo root"));
  turn(*from);
  EXPECT_EQ(from->transmit_room(0), kMostDatagrams);
  EXPECT_EQ(from->next_event(0), kNever);
  const Frames arrived = awaited(*to, 1);
  ASSERT_FALSE(arrived.empty());
  EXPECT_EQ(from->counts().sent_packets, sent);
}

}  // namespace
}  // namespace gradcube::dataplane
