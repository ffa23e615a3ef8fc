// Frames that a test makes, and what it reads in those that arrive.
#ifndef GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_FRAME_FIXTURE_H_
#define GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_FRAME_FIXTURE_H_

#include <cstdint>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/port.h"
#include "dataplane/host/packet_pool.h"
#include "protocol/wire.h"
#include "tests/unit/dataplane/packets_in_use.h"

namespace gradcube::dataplane {

inline std::uint64_t mac_of(std::uint64_t server) { return 0x024700000000 + server; }

// A frame as a test wants it.
struct FrameSpec {
  std::uint64_t to = 0;       // server
  std::uint32_t bytes = 100;  // without FCS
  std::uint16_t thread = 0;
  std::uint8_t ecn = 2;      // ECT(0)
  std::uint32_t number = 0;  // written into the payload, to tell frames apart
};

// True when the IPv4 header's checksum fits.
inline bool ipv4_checksum_fits(const rte_mbuf* packet) {
  std::uint32_t sum = 0;
  for (std::uint32_t at = 0; at < kIpv4Bytes; at += 2) sum += field16(packet, kEthernetBytes + at);
  while ((sum >> 16) != 0) sum = (sum & 0xFFFF) + (sum >> 16);
  return sum == 0xFFFF;
}

// A pool of frames. At the end of a test check_frames() must find all of them again.
class FrameTest : public testing::Test {
 protected:
  static constexpr std::uint32_t kNumberOffset = 42;
  static constexpr std::uint32_t kFrameBytes = 2048;
  static constexpr std::uint32_t kPoolPackets = 8191;

  FrameTest() : frames_(pool_options("frames")) {}

  void check_frames() const { EXPECT_EQ(packets_in_use(frames_), 0u) << "packets have leaked"; }

  static PacketPoolOptions pool_options(const std::string& name) {
    PacketPoolOptions options;
    options.name = name;
    options.count = kPoolPackets;
    options.frame_bytes = kFrameBytes;
    options.cache = 0;
    return options;
  }

  rte_mbuf* frame(const FrameSpec& spec) {
    rte_mbuf* packet = frames_.allocate();
    if (packet == nullptr) return nullptr;
    char* data = rte_pktmbuf_append(packet, static_cast<std::uint16_t>(spec.bytes));
    for (std::uint32_t i = 0; i < spec.bytes; ++i) data[i] = static_cast<char>(i * 7 + spec.number);
    put(data, 0, mac_of(spec.to), 6);
    put(data, 12, 0x0800, 2);
    put(data, 14, 0x4500U | spec.ecn, 2);
    put(data, 16, spec.bytes - kEthernetBytes, 2);
    put(data, 23, 17, 1);
    put(data, 24, 0, 2);
    put(data, 34, protocol::kFirstSourcePort + spec.thread, 2);
    put(data, 36, 48879, 2);
    put(data, kNumberOffset, spec.number, 4);
    std::uint32_t sum = 0;
    for (std::uint32_t at = 14; at < 34; at += 2) sum += field16(packet, at);
    while ((sum >> 16) != 0) sum = (sum & 0xFFFF) + (sum >> 16);
    put(data, 24, static_cast<std::uint16_t>(~sum), 2);
    return packet;
  }

  static void put(char* data, std::uint32_t offset, std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) {
      data[offset + i] = static_cast<char>(value >> (8 * (bytes - 1 - i)));
    }
  }

  static std::uint32_t number_of(const rte_mbuf* packet) {
    return (std::uint32_t{field16(packet, kNumberOffset)} << 16) |
           field16(packet, kNumberOffset + 2);
  }

  static std::string bytes_of(const rte_mbuf* packet) {
    std::string all;
    for (; packet != nullptr; packet = packet->next) {
      all.append(rte_pktmbuf_mtod(packet, const char*), packet->data_len);
    }
    return all;
  }

  // False, and the frame is gone, when the sender's ring is full.
  bool send(Port& from, const FrameSpec& spec) {
    rte_mbuf* packet = frame(spec);
    if (packet == nullptr) return false;
    if (from.transmit(spec.thread % from.queues(), &packet, 1) == 1) return true;
    rte_pktmbuf_free(packet);
    return false;
  }

  // Everything that lies at a port, by looking into its ring once; the caller frees it.
  static std::vector<rte_mbuf*> received(Port& port, std::uint16_t queue = 0) {
    std::vector<rte_mbuf*> all;
    rte_mbuf* burst[32];
    while (const std::uint16_t count = port.receive(queue, burst, 32)) {
      all.insert(all.end(), burst, burst + count);
    }
    return all;
  }

  static std::vector<std::uint32_t> received_numbers(Port& port, std::uint16_t queue = 0) {
    std::vector<std::uint32_t> numbers;
    for (rte_mbuf* packet : received(port, queue)) {
      numbers.push_back(number_of(packet));
      rte_pktmbuf_free(packet);
    }
    return numbers;
  }

  PacketPool frames_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_TESTS_UNIT_DATAPLANE_FABRIC_FRAME_FIXTURE_H_
