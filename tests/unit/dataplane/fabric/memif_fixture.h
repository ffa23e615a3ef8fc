// Ports on the two ends of a memif link, both in this process, and frames for them.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_MEMIF_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_MEMIF_FIXTURE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <gtest/gtest.h>
#include <memory>
#include <stdlib.h>
#include <string>
#include <thread>
#include <vector>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/memif/memif_device.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

class MemifTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kMtu = 9000;
  static constexpr std::chrono::seconds kPatience{20};
  using Frames = std::vector<std::string>;
  using Role = MemifOptions::Role;

  // A device and the port on it.
  struct End {
    std::unique_ptr<MemifDevice> device;
    std::unique_ptr<EthdevPort> port;
    EthdevPort* operator->() const { return port.get(); }
    EthdevPort& operator*() const { return *port; }
    void close() {
      port.reset();
      device.reset();
    }
  };

  void SetUp() override {
    std::string name = "/tmp/gradcube-memif-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    for (const std::unique_ptr<PacketPool>& pool : pools_) {
      EXPECT_EQ(packets_in_use(*pool), 0u) << "packets have leaked";
    }
    EXPECT_EQ(external_.size(), released_) << "external buffers were not released";
    EXPECT_TRUE(std::filesystem::is_empty(directory_)) << "a socket is left behind";
    std::filesystem::remove_all(directory_);
  }

  End end(Role role, std::uint16_t queues = 1, EthdevPortOptions wishes = {}) {
    MemifOptions options;
    options.socket = (directory_ / "link").string();
    options.number = 7;
    options.role = role;
    options.mtu = kMtu;
    options.slots = 16;
    End end;
    end.device = std::make_unique<MemifDevice>(options);
    EthdevPortOptions of_port = end.device->port_options();
    of_port.bits_per_second = wishes.bits_per_second;
    of_port.backlog = 8;
    of_port.pools.assign(queues, {.received = &buffers_, .device = nullptr, .sent = nullptr});
    end.port = std::make_unique<EthdevPort>(of_port, clock_);
    return end;
  }

  // The driver joins two ends in the background.
  static bool await_link(const EthdevPort& port, bool link = true) {
    const auto until = std::chrono::steady_clock::now() + kPatience;
    while (port.has_link() != link && std::chrono::steady_clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return port.has_link() == link;
  }

  // Whether frames can pass both ways. The end that connects gives the other one slots for what it
  // is to receive whenever it receives.
  static bool joined(const End& listens, const End& connects) {
    if (!await_link(*listens) || !await_link(*connects)) return false;
    for (std::uint16_t queue = 0; queue < connects->queues(); ++queue) received(*connects, queue);
    return true;
  }

  static std::string frame(std::size_t bytes, std::size_t number = 0) {
    std::string whole(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) whole[i] = static_cast<char>(i * 7 + number);
    return whole;
  }

  rte_mbuf* in_one_packet(const std::string& whole) {
    rte_mbuf* packet = buffers_.allocate();
    if (packet == nullptr) throw std::runtime_error("the test has no buffer left");
    std::copy(whole.begin(), whole.end(),
              rte_pktmbuf_append(packet, static_cast<std::uint16_t>(whole.size())));
    return packet;
  }
  // The first bytes in a packet, the others in an external buffer, as an engine sends segments.
  rte_mbuf* chained(const std::string& whole, std::size_t header) {
    rte_mbuf* packet = headers_.allocate();
    std::copy_n(whole.begin(), header,
                rte_pktmbuf_append(packet, static_cast<std::uint16_t>(header)));
    External& external = external_.emplace_back();
    external.bytes = whole.substr(header);
    external.shared.free_cb = [](void*, void* released) { ++*static_cast<std::size_t*>(released); };
    external.shared.fcb_opaque = &released_;
    rte_mbuf_ext_refcnt_set(&external.shared, 1);
    rte_mbuf* part = headers_.allocate();
    const auto bytes = static_cast<std::uint16_t>(external.bytes.size());
    rte_pktmbuf_attach_extbuf(part, external.bytes.data(), RTE_BAD_IOVA, bytes, &external.shared);
    rte_pktmbuf_append(part, bytes);
    rte_pktmbuf_chain(packet, part);
    return packet;
  }

  // Whether the port accepts it now; if not, it is freed.
  static bool send(EthdevPort& from, rte_mbuf* packet, std::uint16_t queue = 0) {
    if (from.transmit(queue, &packet, 1) == 1) return true;
    rte_pktmbuf_free(packet);
    return false;
  }
  // What lies at a queue now.
  static Frames received(EthdevPort& at, std::uint16_t queue = 0) {
    rte_mbuf* burst[32];
    const std::uint16_t count = at.receive(queue, burst, 32);
    Frames all;
    for (std::uint16_t i = 0; i < count; ++i) {
      EXPECT_EQ(burst[i]->nb_segs, 1u);
      all.emplace_back(rte_pktmbuf_mtod(burst[i], const char*), burst[i]->pkt_len);
      rte_pktmbuf_free(burst[i]);
    }
    return all;
  }

  std::filesystem::path directory_;
  VirtualClock clock_{1'000'000'000};
  std::vector<std::unique_ptr<PacketPool>> pools_;
  PacketPool& buffers_ = made("buffers", kMtu + kEthernetBytes);
  PacketPool& headers_ = made("headers", kHeaderBytes);
  std::size_t released_ = 0;

 private:
  struct External {
    std::string bytes;
    rte_mbuf_ext_shared_info shared{};
  };

  PacketPool& made(const char* name, std::uint32_t bytes) {
    return *pools_.emplace_back(std::make_unique<PacketPool>(
        PacketPoolOptions{.name = name, .count = 511, .frame_bytes = bytes, .cache = 0}));
  }

  std::deque<External> external_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_MEMIF_FIXTURE_H_
