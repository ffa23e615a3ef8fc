#include "dataplane/fabric/frame_fields.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint32_t kEtherTypeOffset = 12;
constexpr std::uint32_t kChecksumOffset = kEthernetBytes + 10;
constexpr std::uint16_t kEcnMask = 0x3;
constexpr std::uint16_t kCongestionExperienced = 0x3;

}  // namespace

bool understands_marks(const rte_mbuf* packet) {
  if (packet->data_len < kEthernetBytes + kIpv4Bytes) return false;
  if (field16(packet, kEtherTypeOffset) != protocol::kEtherTypeIpv4) return false;
  return (field16(packet, kEthernetBytes) & kEcnMask) != 0;
}

void mark_congestion(rte_mbuf* packet) {
  // Version, header length, DSCP and ECN are one word of the checksum.
  const std::uint16_t before = field16(packet, kEthernetBytes);
  const auto after = static_cast<std::uint16_t>(before | kCongestionExperienced);
  // RFC 1624, equation 3: HC' = ~(~HC + ~m + m'), in one's complement.
  std::uint32_t sum = static_cast<std::uint16_t>(~field16(packet, kChecksumOffset));
  sum += static_cast<std::uint16_t>(~before);
  sum += after;
  sum = (sum & 0xFFFF) + (sum >> 16);
  sum = (sum & 0xFFFF) + (sum >> 16);
  put_field16(packet, kEthernetBytes, after);
  put_field16(packet, kChecksumOffset, ~sum);
}

rte_mbuf* copy_frame(const rte_mbuf* packet, rte_mempool* pool) {
  if (pool == nullptr) return nullptr;
  if (packet->pkt_len > frame_room(pool)) return nullptr;
  return rte_pktmbuf_copy(packet, pool, 0, packet->pkt_len);
}

}  // namespace gradcube::dataplane
