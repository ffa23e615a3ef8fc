#include "dataplane/host/packet_ring.h"

#include <bit>
#include <rte_errno.h>
#include <rte_malloc.h>
#include <stdexcept>
#include <string>

namespace gradcube::dataplane {

namespace {
constexpr std::uint32_t kMaxDepth = 1U << 20;
}

PacketRing::PacketRing(std::uint32_t depth, Producers producers) : ring_(nullptr) {
  if (depth == 0 || depth > kMaxDepth) {
    throw std::runtime_error("a packet ring holds 1 to " + std::to_string(kMaxDepth) +
                             " packets, not " + std::to_string(depth));
  }
  // One entry stays empty to tell a full ring from an empty one.
  const ssize_t bytes = rte_ring_get_memsize(std::bit_ceil(depth + 1));
  ring_ = static_cast<rte_ring*>(
      rte_zmalloc("packet_ring", static_cast<std::size_t>(bytes), RTE_CACHE_LINE_SIZE));
  if (ring_ == nullptr) {
    throw std::runtime_error("no memory for a ring of " + std::to_string(depth) +
                             " packets: give DPDK more memory");
  }
  const unsigned enqueue = producers == Producers::one ? RING_F_SP_ENQ : 0;
  const int failed =
      rte_ring_init(ring_, "packets", depth, enqueue | RING_F_SC_DEQ | RING_F_EXACT_SZ);
  if (failed != 0) {
    rte_free(ring_);
    throw std::runtime_error("cannot make a ring of " + std::to_string(depth) +
                             " packets: " + rte_strerror(-failed));
  }
}

PacketRing::~PacketRing() {
  if (ring_ == nullptr) return;
  rte_mbuf* packet = nullptr;
  while (take(&packet, 1) == 1) rte_pktmbuf_free(packet);
  rte_free(ring_);
}

}  // namespace gradcube::dataplane
