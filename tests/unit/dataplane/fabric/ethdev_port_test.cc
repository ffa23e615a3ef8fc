// A port on a device that receives what it sends (net_ring), so that a test sees what the device
// was given and decides what it receives.
#include "dataplane/fabric/nic/ethdev_port.h"

#include <gtest/gtest.h>
#include <memory>
#include <rte_dev.h>
#include <rte_ethdev.h>
#include <string>
#include <vector>

#include "control/base/errors.h"
#include "dataplane/fabric/frame_fields.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kMtu = 1500;
int devices_made = 0;

class EthdevPortTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(rte_eal_hotplug_add("vdev", name_.c_str(), ""), 0); }
  void TearDown() override {
    port_.reset();
    rte_eal_hotplug_remove("vdev", name_.c_str());
    for (const PacketPool* pool : {&frames_, &headers_, &copies_}) {
      EXPECT_EQ(packets_in_use(*pool), 0u) << "packets have leaked";
    }
  }

  void start(const EthdevQueuePools& pools, EthdevPortOptions options = {}) {
    ASSERT_EQ(rte_eth_dev_get_port_by_name(name_.c_str(), &options.device), 0);
    options.name = name_;
    options.mtu = kMtu;
    options.pools = {pools};
    port_ = std::make_unique<EthdevPort>(options, clock_);
    device_ = options.device;
  }

  static void fill(rte_mbuf* packet, std::size_t bytes, char first) {
    char* data = rte_pktmbuf_append(packet, static_cast<std::uint16_t>(bytes));
    for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(first + i);
  }
  rte_mbuf* frame(std::size_t bytes) {
    rte_mbuf* packet = frames_.allocate();
    fill(packet, bytes, 'a');
    return packet;
  }
  // Bytes 'a', 'b', ... over two packets.
  rte_mbuf* chain(std::size_t first, std::size_t second) {
    rte_mbuf* packet = headers_.allocate();
    fill(packet, first, 'a');
    rte_mbuf* rest = frames_.allocate();
    fill(rest, second, static_cast<char>('a' + first));
    rte_pktmbuf_chain(packet, rest);
    return packet;
  }
  std::vector<rte_mbuf*> received() {
    std::vector<rte_mbuf*> burst(32);
    burst.resize(port_->receive(0, burst.data(), 32));
    return burst;
  }

  // Sends frames past the port until the device takes no more. They are one packet, many times.
  void fill_device() {
    rte_mbuf* packet = frame(100);
    do {
      rte_mbuf_refcnt_update(packet, 1);
    } while (rte_eth_tx_burst(device_, 0, &packet, 1) == 1);
    rte_pktmbuf_free(packet);  // the reference that was not taken
    rte_pktmbuf_free(packet);  // this function's
  }
  void drain_device() {
    rte_mbuf* packet = nullptr;
    while (rte_eth_rx_burst(device_, 0, &packet, 1) == 1) rte_pktmbuf_free(packet);
  }

  PacketPool frames_{{.name = "ring_frames", .count = 127, .frame_bytes = 4000, .cache = 0}};
  PacketPool headers_{{.name = "ring_headers", .count = 127, .cache = 0}};
  PacketPool copies_{
      {.name = "ring_copies", .count = 3, .frame_bytes = kMtu + kEthernetBytes, .cache = 0}};
  VirtualClock clock_{1'000'000'000};
  // The driver keeps the rings of a device that is gone, with their names.
  const std::string name_ = "net_ring" + std::to_string(++devices_made);
  std::unique_ptr<EthdevPort> port_;
  std::uint16_t device_ = 0;
};

TEST_F(EthdevPortTest, SendsChainsAsTheyAreAndReceivesThemInOnePacket) {
  start({.received = &copies_, .device = nullptr, .sent = nullptr});
  rte_mbuf* sent = chain(60, 900);
  ASSERT_EQ(port_->transmit(0, &sent, 1), 1);
  EXPECT_EQ(packets_in_use(copies_), 0u);
  const std::vector<rte_mbuf*> got = received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0]->nb_segs, 1);
  ASSERT_EQ(got[0]->pkt_len, 960u);
  for (std::size_t i = 0; i < 960; ++i) {
    ASSERT_EQ(rte_pktmbuf_mtod(got[0], const char*)[i], static_cast<char>('a' + i)) << i;
  }
  EXPECT_EQ(got[0]->pool, copies_.get());
  EXPECT_EQ(packets_in_use(frames_), 0u);
  rte_pktmbuf_free(got[0]);
}

TEST_F(EthdevPortTest, PassesOnWholeFramesWithoutACopy) {
  start({.received = &copies_, .device = nullptr, .sent = nullptr});
  rte_mbuf* const sent = frame(100);
  rte_mbuf* burst = sent;
  ASSERT_EQ(port_->transmit(0, &burst, 1), 1);
  EXPECT_EQ(received(), std::vector{sent});
  rte_pktmbuf_free(sent);
}

TEST_F(EthdevPortTest, CopiesOutOfTheDevicesPackets) {
  start({.received = &copies_, .device = &frames_, .sent = nullptr});
  for (int i = 0; i < 5; ++i) {
    rte_mbuf* sent = frame(200);
    ASSERT_EQ(port_->transmit(0, &sent, 1), 1);
  }
  const std::vector<rte_mbuf*> got = received();
  EXPECT_EQ(packets_in_use(frames_), 0u);
  ASSERT_EQ(got.size(), 3u);
  EXPECT_EQ(port_->drop_counts(0).rx_no_buffer, 2u);
  EXPECT_EQ(port_->counts().received_bytes, 600u);
  for (rte_mbuf* packet : got) {
    EXPECT_EQ(packet->pool, copies_.get());
    EXPECT_EQ(rte_pktmbuf_mtod(packet, const char*)[9], 'j');
    rte_pktmbuf_free(packet);
  }
}

TEST_F(EthdevPortTest, DropsWhatIsLongerThanItsMtuAllows) {
  start({.received = &frames_, .device = nullptr, .sent = nullptr});
  rte_mbuf* sent[] = {frame(kMtu + kEthernetBytes), frame(kMtu + kEthernetBytes + 1)};
  ASSERT_EQ(rte_eth_tx_burst(device_, 0, sent, 2), 2);
  const std::vector<rte_mbuf*> got = received();
  ASSERT_EQ(got.size(), 1u);
  EXPECT_EQ(got[0]->pkt_len, kMtu + kEthernetBytes);
  EXPECT_EQ(port_->drop_counts(0).rx_too_long, 1u);
  rte_pktmbuf_free(got[0]);
}

TEST_F(EthdevPortTest, KeepsNoPacketOfItsSendersWhereItCopies) {
  start({.received = &frames_, .device = nullptr, .sent = &copies_});
  rte_mbuf* whole = frame(100);
  ASSERT_EQ(port_->transmit(0, &whole, 1), 1);
  EXPECT_EQ(packets_in_use(frames_), 0u);
  EXPECT_EQ(packets_in_use(copies_), 1u) << "the device has it";
  for (rte_mbuf* packet : received()) rte_pktmbuf_free(packet);
}

TEST_F(EthdevPortTest, DropsWhatItCannotCopyToSend) {
  start({.received = &frames_, .device = nullptr, .sent = &copies_});
  std::vector<rte_mbuf*> sent;
  for (int i = 0; i < 5; ++i) sent.push_back(chain(60, 100));
  ASSERT_EQ(port_->transmit(0, sent.data(), 5), 5);
  EXPECT_EQ(port_->drop_counts(0).tx_no_buffer, 2u);
  EXPECT_EQ(port_->counts().sent_packets, 3u);
  for (rte_mbuf* packet : received()) rte_pktmbuf_free(packet);
}

TEST_F(EthdevPortTest, AsksWhetherThereIsALinkOnlyAfterNothingWasTakenForAWhile) {
  start({.received = &frames_, .device = nullptr, .sent = nullptr});
  fill_device();
  rte_mbuf* waits = frame(100);
  ASSERT_EQ(port_->transmit(0, &waits, 1), 1);
  const auto dropped_after = [this](Nanoseconds time) {
    clock_.advance(time);
    // The port tries again, as with each receive().
    EXPECT_EQ(port_->receive(0, nullptr, 0), 0);
    return port_->drop_counts(0).tx_dropped;
  };
  ASSERT_EQ(rte_eth_dev_set_link_down(device_), 0);
  EXPECT_EQ(dropped_after(EthdevPort::kLinkPatience - 1), 0u) << "it is not asked yet";
  ASSERT_EQ(rte_eth_dev_set_link_up(device_), 0);
  EXPECT_EQ(dropped_after(1), 0u) << "it is asked, and has a link";
  ASSERT_EQ(rte_eth_dev_set_link_down(device_), 0);
  EXPECT_EQ(dropped_after(EthdevPort::kLinkPatience - 1), 0u) << "it is not asked again so soon";
  EXPECT_EQ(dropped_after(1), 1u);
  ASSERT_EQ(rte_eth_dev_set_link_up(device_), 0);
  drain_device();
}

TEST_F(EthdevPortTest, TellsWhatTheDeviceDropsAsItsDriverCountsIt) {
  start({.received = &frames_, .device = nullptr, .sent = nullptr});
  EXPECT_EQ(port_->nic_drop_counts(), NicDropCounts()) << "a ring drops nothing";
  rte_eth_stats stats{};
  stats.imissed = 1;
  stats.ierrors = 2;
  stats.rx_nombuf = 3;
  stats.oerrors = 4;
  EXPECT_EQ(
      nic_drops_of(stats),
      (NicDropCounts{
          .nic_rx_missed = 1, .nic_rx_errors = 2, .nic_rx_no_buffer = 3, .nic_tx_errors = 4}));
}

TEST_F(EthdevPortTest, LooksAtADeviceWhoseDriverHasNoReceiveInterrupts) {
  EthdevPortOptions options;
  options.receive_interrupts = true;
  start({.received = &copies_, .device = nullptr, .sent = nullptr}, options);
  EXPECT_EQ(port_->wake_descriptor(0), -1);
  port_->prepare_wait(0);
  EXPECT_LE(port_->next_event(0), clock_.now() + EthdevPort::kLongestLook);
  port_->finish_wait(0);
}

TEST_F(EthdevPortTest, RefusesARateThatIsTooLow) {
  EthdevPortOptions options;
  options.bits_per_second = 999'999;
  EXPECT_THROW(start({.received = &frames_, .device = nullptr, .sent = nullptr}, options),
               control::UsageError);
}

}  // namespace

}  // namespace gradcube::dataplane
