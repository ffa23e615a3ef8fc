#include "dataplane/fabric/kernel/packet_filter.h"

#include <linux/if_packet.h>

#include "dataplane/fabric/frame_fields.h"
#include "protocol/wire.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kWholeFrame = UINT32_MAX;
constexpr std::uint32_t kUdpAt = kEthernetBytes + kIpv4Bytes;
constexpr std::uint32_t kIpv4WithoutOptions = 0x45;
constexpr std::uint32_t kFragment = 0x3FFF;  // "more fragments", or an offset

constexpr sock_filter load32(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at); }
constexpr sock_filter load8(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_B | BPF_ABS, at); }
constexpr sock_filter load16(std::uint32_t at) { return BPF_STMT(BPF_LD | BPF_H | BPF_ABS, at); }
constexpr sock_filter give(std::uint32_t bytes) { return BPF_STMT(BPF_RET | BPF_K, bytes); }
// Skips so many instructions unless the value that was loaded is this.
constexpr sock_filter expect(std::uint32_t value, std::uint8_t otherwise_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, value, 0, otherwise_skip);
}
// The same unless it is at most this.
constexpr sock_filter expect_at_most(std::uint32_t value, std::uint8_t otherwise_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, value, otherwise_skip, 0);
}
constexpr sock_filter skip(std::uint32_t instructions) {
  return BPF_STMT(BPF_JMP | BPF_JA, instructions);
}
// Skips so many instructions if one of these bits is set.
constexpr sock_filter expect_none_of(std::uint32_t bits, std::uint8_t otherwise_skip) {
  return BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, bits, otherwise_skip, 0);
}

constexpr sock_filter calculate(std::uint16_t operation, std::uint32_t value) {
  return BPF_STMT(static_cast<std::uint16_t>(BPF_ALU | operation | BPF_K), value);
}

// The first four bytes of a MAC address, and the last two.
constexpr std::uint32_t high_of(const std::array<std::uint8_t, 6>& mac) {
  return std::uint32_t{mac[0]} << 24 | std::uint32_t{mac[1]} << 16 | std::uint32_t{mac[2]} << 8 |
         mac[3];
}
constexpr std::uint32_t low_of(const std::array<std::uint8_t, 6>& mac) {
  return std::uint32_t{mac[4]} << 8 | mac[5];
}

constexpr auto kKindOfHost = static_cast<std::uint32_t>(SKF_AD_OFF + SKF_AD_PKTTYPE);
constexpr std::array<std::uint8_t, 6> kToAll{0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

constexpr std::array kNoFrames{give(0)};

}  // namespace

PacketProgram no_frames() { return kNoFrames; }

// A frame that ends before a field that is loaded is not let in. The kernel takes the tag of a VLAN
// out of the frame; a frame of a VLAN that the interface is not in counts as one for another host,
// and so does one for a MAC that is not the interface's. One to all hosts counts as such, and what
// this host sends itself as neither.
FrameFilter frames_of_gradcube(const std::array<std::uint8_t, 6>& mac, bool is_the_interfaces,
                               QueueOfPort queue) {
  return {
      load32(0),
      expect(high_of(kToAll), 5),
      load16(4),
      expect(low_of(kToAll), 22),
      load8(kKindOfHost),
      expect(PACKET_BROADCAST, 20),
      skip(5),
      expect(high_of(mac), 18),
      load16(4),
      expect(low_of(mac), 16),
      load8(kKindOfHost),
      expect_at_most(is_the_interfaces ? PACKET_HOST : PACKET_OTHERHOST, 14),
      load8(kEthernetBytes),
      expect(kIpv4WithoutOptions, 12),
      load16(kEthernetBytes + 6),
      expect_none_of(kFragment, 10),
      load8(kEthernetBytes + 9),
      expect(protocol::kProtocolUdp, 8),
      load16(kUdpAt + 2),
      expect(protocol::kUdpPort, 6),
      load16(kUdpAt),
      calculate(BPF_SUB, protocol::kFirstSourcePort),
      calculate(BPF_AND, UINT16_MAX),
      calculate(BPF_MOD, queue.queues),
      expect(queue.number, 1),
      give(kWholeFrame),
      give(0),
  };
}

}  // namespace gradcube::dataplane
