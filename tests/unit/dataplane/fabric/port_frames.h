// Frames for tests of ports that copy: made of bytes, sent in packets of all forms, and received.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PORT_FRAMES_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PORT_FRAMES_H_

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <deque>
#include <gtest/gtest.h>
#include <memory>
#include <poll.h>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/wire.h"
#include "tests/unit/dataplane/dpdk_environment.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

class PortFrames : public testing::Test {
 protected:
  static constexpr std::uint32_t kMtu = 9000;
  static constexpr std::chrono::seconds kPatience{20};
  // After which a port that the kernel did not serve tries again.
  static constexpr Nanoseconds kTurn = 50'000;
  using Frames = std::vector<std::string>;

  void TearDown() override {
    for (std::unique_ptr<PacketPool>* pool : {&headers_, &buffers_}) {
      if (*pool == nullptr) continue;
      EXPECT_EQ(packets_in_use(**pool), 0u) << "packets have leaked";
    }
    EXPECT_EQ(external_.size(), released_) << "external buffers were not released";
  }

  // For received frames, and for frames in one segment.
  PacketPool& buffers() { return made(buffers_, "buffers", kMtu + kEthernetBytes); }
  PacketPool& headers() { return made(headers_, "headers", kHeaderBytes); }

  // A frame from a to b, or back, of at least 82 bytes.
  std::string frame(std::uint32_t bytes, std::uint32_t number, std::uint16_t thread = 0,
                    bool back = false) const {
    constexpr std::uint32_t kSegment = protocol::kSegmentHeaderBytes;
    std::string whole(bytes, '\0');
    for (std::size_t i = 0; i < bytes; ++i) whole[i] = static_cast<char>(i * 7 + number);
    protocol::LinkAddresses link{.source_mac = macs_[0],
                                 .destination_mac = macs_[1],
                                 .source_ip = 0x0a000001,
                                 .destination_ip = 0x0a000002};
    if (back) std::swap(link.source_mac, link.destination_mac);
    protocol::SegmentHeader segment;
    segment.length = static_cast<std::uint16_t>(bytes < kSegment ? 0 : bytes - kSegment);
    const std::size_t header =
        protocol::encode_frame({reinterpret_cast<std::uint8_t*>(whole.data()), whole.size()}, link,
                               {}, {.sequence = number}, bytes < kSegment ? nullptr : &segment);
    EXPECT_LE(header, bytes);
    EXPECT_NE(header, 0u);
    put(whole, kEthernetBytes + kIpv4Bytes, protocol::kFirstSourcePort + thread);
    return whole;
  }
  Frames frames(std::size_t count, std::uint32_t bytes) const {
    Frames all;
    for (std::uint32_t i = 0; i < count; ++i) all.push_back(frame(bytes, i));
    return all;
  }
  static void put(std::string& whole, std::size_t at, std::uint32_t value16) {
    whole.at(at) = static_cast<char>(value16 >> 8);
    whole.at(at + 1) = static_cast<char>(value16);
  }

  rte_mbuf* in_one_segment(const std::string& whole) {
    rte_mbuf* packet = buffers().allocate();
    if (packet == nullptr) throw std::runtime_error("the test has no buffer left");
    std::copy(whole.begin(), whole.end(),
              rte_pktmbuf_append(packet, static_cast<std::uint16_t>(whole.size())));
    return packet;
  }
  // The first bytes in an mbuf, the others in external buffers that end at these places.
  rte_mbuf* chained(const std::string& whole, std::size_t header,
                    const std::vector<std::size_t>& ends) {
    rte_mbuf* packet = headers().allocate();
    std::copy_n(whole.begin(), header,
                rte_pktmbuf_append(packet, static_cast<std::uint16_t>(header)));
    std::size_t begin = header;
    for (const std::size_t end : ends) {
      External& external = external_.emplace_back();
      external.bytes = whole.substr(begin, end - begin);
      external.shared.free_cb = [](void*, void* released) {
        ++*static_cast<std::size_t*>(released);
      };
      external.shared.fcb_opaque = &released_;
      rte_mbuf_ext_refcnt_set(&external.shared, 1);
      rte_mbuf* part = headers().allocate();
      rte_pktmbuf_attach_extbuf(part, external.bytes.data(), RTE_BAD_IOVA,
                                static_cast<std::uint16_t>(external.bytes.size()),
                                &external.shared);
      rte_pktmbuf_append(part, static_cast<std::uint16_t>(external.bytes.size()));
      rte_pktmbuf_chain(packet, part);
      begin = end;
    }
    return packet;
  }

  // Until the port has accepted all; false if it does not in time.
  bool send(Port& from, const std::vector<rte_mbuf*>& packets, std::uint16_t queue = 0) {
    std::vector<rte_mbuf*> rest = packets;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (!rest.empty() && std::chrono::steady_clock::now() < end) {
      const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(rest.size(), 32));
      rest.erase(rest.begin(), rest.begin() + from.transmit(queue, rest.data(), count));
      if (!rest.empty()) turn(from);
    }
    for (rte_mbuf* packet : rest) rte_pktmbuf_free(packet);
    return rest.empty();
  }
  bool send(Port& from, const Frames& all, std::uint16_t queue = 0) {
    return std::all_of(all.begin(), all.end(), [&](const std::string& whole) {
      return send(from, std::vector{in_one_segment(whole)}, queue);
    });
  }

  // What lies at a queue now.
  static Frames received(Port& at, std::uint16_t queue = 0, std::uint16_t most = 32) {
    std::vector<rte_mbuf*> burst(most);
    const std::uint16_t count = at.receive(queue, burst.data(), most);
    Frames all;
    for (std::uint16_t i = 0; i < count; ++i) {
      EXPECT_EQ(burst[i]->nb_segs, 1u);
      all.emplace_back(rte_pktmbuf_mtod(burst[i], const char*), burst[i]->pkt_len);
      rte_pktmbuf_free(burst[i]);
    }
    return all;
  }
  // What arrives until there are so many frames, or nothing more comes in time. `sender` goes on.
  template <typename KindOfPort>
  Frames awaited(KindOfPort& at, std::size_t count, Port* sender = nullptr,
                 std::uint16_t queue = 0) {
    Frames all;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (all.size() < count && std::chrono::steady_clock::now() < end) {
      const Frames some = received(at, queue);
      all.insert(all.end(), some.begin(), some.end());
      if (sender != nullptr) turn(*sender);
      pollfd readable{at.wake_descriptor(queue), POLLIN, 0};
      if (some.empty()) poll(&readable, 1, 1);
    }
    return all;
  }
  // So many packets, as soon as they have arrived; fewer if they do not come in time. The caller
  // frees them.
  static std::vector<rte_mbuf*> awaited_packets(Port& at, std::size_t count) {
    std::vector<rte_mbuf*> packets;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (packets.size() < count && std::chrono::steady_clock::now() < end) {
      rte_mbuf* burst[32];
      const std::uint16_t some = at.receive(0, burst, 32);
      packets.insert(packets.end(), burst, burst + some);
    }
    return packets;
  }
  // Until something has arrived for which the port, whose pool is empty, has no buffer; whether it
  // has in time.
  template <typename KindOfPort>
  static bool lacks_a_buffer_soon(KindOfPort& at) {
    const std::uint64_t before = at.drop_counts(0).rx_no_buffer;
    const auto end = std::chrono::steady_clock::now() + kPatience;
    while (at.drop_counts(0).rx_no_buffer == before && std::chrono::steady_clock::now() < end) {
      rte_mbuf* none[1];
      EXPECT_EQ(at.receive(0, none, 1), 0u);
    }
    return at.drop_counts(0).rx_no_buffer != before;
  }
  // Of packets in which frames are sent, where they are not in one segment.
  struct Forms {
    std::uint32_t least_frame;
    std::size_t least_header;
    std::size_t most_header;
    std::size_t most_ends;  // of external buffers within the frame
  };
  // Each arrives whole, those of these lengths and others that are drawn, in packets of all forms.
  template <typename KindOfPort>
  void expect_frames_of_all_lengths_to_pass(KindOfPort& from, KindOfPort& to,
                                            std::vector<std::uint32_t> lengths,
                                            const Forms& forms) {
    const std::uint64_t seed = test_seed();
    SCOPED_TRACE("GRADCUBE_TEST_SEED=" + std::to_string(seed));
    std::mt19937_64 random(seed);
    const auto between = [&](std::size_t least, std::size_t most) {
      return std::uniform_int_distribution<std::size_t>(least, most)(random);
    };
    while (lengths.size() < 400) {
      lengths.push_back(
          static_cast<std::uint32_t>(between(forms.least_frame, kMtu + kEthernetBytes)));
    }
    std::uint64_t bytes = 0;
    for (std::uint32_t i = 0; i < lengths.size(); ++i) {
      const std::string sent = frame(lengths[i], i, static_cast<std::uint16_t>(i));
      bytes += sent.size();
      rte_mbuf* packet = nullptr;
      if (between(0, 3) == 0) {
        packet = in_one_segment(sent);
      } else {
        std::vector<std::size_t> ends(between(0, forms.most_ends));
        const std::size_t header = between(forms.least_header, forms.most_header);
        for (std::size_t& end : ends) end = between(header, sent.size());
        std::sort(ends.begin(), ends.end());
        ends.push_back(sent.size());
        packet = chained(sent, header, ends);
      }
      ASSERT_TRUE(send(from, std::vector{packet}));
      ASSERT_EQ(awaited(to, 1), Frames{sent}) << "frame " << i << " of " << sent.size() << " bytes";
    }
    EXPECT_EQ(from.counts().sent_packets, lengths.size());
    EXPECT_EQ(from.counts().sent_bytes, bytes);
    EXPECT_EQ(to.counts().received_packets, lengths.size());
    EXPECT_EQ(to.counts().received_bytes, bytes);
  }
  // An engine's iteration, some time later, that sends nothing new.
  void turn(Port& sender) {
    clock_.advance(kTurn);
    for (std::uint16_t queue = 0; queue < sender.queues(); ++queue) {
      EXPECT_TRUE(received(sender, queue).empty());
    }
  }

  // Of the two ports between which frames pass.
  std::array<std::array<std::uint8_t, 6>, 2> macs_{};
  VirtualClock clock_{1'000'000};

 private:
  struct External {
    std::string bytes;
    rte_mbuf_ext_shared_info shared{};
  };

  static PacketPool& made(std::unique_ptr<PacketPool>& pool, const char* name,
                          std::uint32_t bytes) {
    if (pool == nullptr) {
      pool = std::make_unique<PacketPool>(
          PacketPoolOptions{.name = name, .count = 1023, .frame_bytes = bytes, .cache = 0});
    }
    return *pool;
  }

  std::unique_ptr<PacketPool> headers_;
  std::unique_ptr<PacketPool> buffers_;
  std::deque<External> external_;
  std::size_t released_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_PORT_FRAMES_H_
