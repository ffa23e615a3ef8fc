// A port with several queues, on a device (net_ring) whose rings the test has made: it sees which
// ring a queue sends into, and decides which it receives from.

#include <gtest/gtest.h>
#include <memory>
#include <rte_dev.h>
#include <rte_eth_ring.h>
#include <rte_ethdev.h>
#include <rte_ring.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kMtuOfQueues = 1500;
int ring_devices_made = 0;

class EthdevQueues : public testing::Test {
 protected:
  void TearDown() override {
    port_.reset();
    if (!device_name_.empty()) rte_eal_hotplug_remove("vdev", device_name_.c_str());
    for (const auto* rings : {&in_, &out_}) {
      for (rte_ring* ring : *rings) {
        while (rte_mbuf* packet = take(ring)) rte_pktmbuf_free(packet);
        rte_ring_free(ring);
      }
    }
    EXPECT_EQ(packets_in_use(frames_), 0u) << "packets have leaked";
  }

  // A device with so many queues, and a port that wants `queues`.
  void start(unsigned receive, unsigned send, std::uint16_t queues) {
    const std::string name = "queues" + std::to_string(++ring_devices_made);
    for (unsigned i = 0; i < receive; ++i) in_.push_back(ring(name + "in" + std::to_string(i)));
    for (unsigned i = 0; i < send; ++i) out_.push_back(ring(name + "out" + std::to_string(i)));
    const int device = rte_eth_from_rings(name.c_str(), in_.data(), receive, out_.data(), send,
                                          static_cast<unsigned>(SOCKET_ID_ANY));
    ASSERT_GE(device, 0);
    EthdevPortOptions options;
    options.device = static_cast<std::uint16_t>(device);
    char text[RTE_ETH_NAME_MAX_LEN];
    ASSERT_EQ(rte_eth_dev_get_name_by_port(options.device, text), 0);
    device_name_ = text;
    options.name = "NIC 0000:03:00.0";
    options.mtu = kMtuOfQueues;
    options.receive_interrupts = true;
    options.pools.assign(queues, {.received = &frames_, .device = nullptr, .sent = nullptr});
    port_ = std::make_unique<EthdevPort>(options, clock_);
  }

  static rte_ring* ring(const std::string& name) {
    return rte_ring_create(name.c_str(), 64, SOCKET_ID_ANY, RING_F_SP_ENQ | RING_F_SC_DEQ);
  }
  static rte_mbuf* take(rte_ring* ring) {
    void* packet = nullptr;
    return rte_ring_dequeue(ring, &packet) == 0 ? static_cast<rte_mbuf*>(packet) : nullptr;
  }
  rte_mbuf* frame() {
    rte_mbuf* packet = frames_.allocate();
    rte_pktmbuf_append(packet, 100);
    return packet;
  }
  // What comes to the queue; freed.
  unsigned received(std::uint16_t queue) {
    rte_mbuf* burst[32];
    const std::uint16_t count = port_->receive(queue, burst, 32);
    rte_pktmbuf_free_bulk(burst, count);
    return count;
  }

  PacketPool frames_{{.name = "queue_frames",
                      .count = 127,
                      .frame_bytes = kMtuOfQueues + kEthernetBytes,
                      .cache = 0}};
  VirtualClock clock_{1'000'000'000};
  std::vector<rte_ring*> in_;
  std::vector<rte_ring*> out_;
  std::string device_name_;
  std::unique_ptr<EthdevPort> port_;
};

TEST_F(EthdevQueues, SendAndReceiveEachByTheirOwnOfTheDevices) {
  start(2, 2, 2);
  EXPECT_EQ(port_->queues(), 2);
  rte_mbuf* sent[] = {frame(), frame()};
  ASSERT_EQ(port_->transmit(1, sent, 2), 2);
  EXPECT_EQ(rte_ring_count(out_[0]), 0u);
  EXPECT_EQ(rte_ring_count(out_[1]), 2u);
  ASSERT_EQ(rte_ring_enqueue(in_[1], frame()), 0);
  EXPECT_EQ(received(0), 0u);
  EXPECT_EQ(received(1), 1u);
  EXPECT_EQ(port_->counts(1).received_packets, 1u);
  EXPECT_EQ(port_->counts(0).received_packets, 0u);
  EXPECT_EQ(port_->steering(), DeviceSteering::none) << "a ring has neither rules nor RSS";
}

TEST_F(EthdevQueues, ReceiveOnTheFirstAloneWhereTheDeviceHasFewer) {
  start(2, 3, 3);
  ASSERT_EQ(rte_ring_enqueue(in_[0], frame()), 0);
  EXPECT_EQ(received(1), 0u);
  EXPECT_EQ(received(2), 0u);
  EXPECT_EQ(received(0), 1u);
  EXPECT_NE(port_->next_event(0), kNever);
  EXPECT_EQ(port_->next_event(2), kNever) << "nobody need look there";
  for (std::uint16_t queue = 0; queue < 3; ++queue) {
    rte_mbuf* sent = frame();
    ASSERT_EQ(port_->transmit(queue, &sent, 1), 1);
    EXPECT_EQ(rte_ring_count(out_[queue]), 1u);
  }
}

TEST_F(EthdevQueues, AreRefusedBeyondThoseThatTheDeviceCanSendFrom) {
  try {
    start(1, 2, 3);
    FAIL() << "it has two";
  } catch (const control::UsageError& error) {
    EXPECT_STREQ(error.what(),
                 "lcores: there are 3, each with a queue of its own, and NIC 0000:03:00.0 has 2 to "
                 "send from: expected at most 2");
  }
}

}  // namespace

}  // namespace gradcube::dataplane
