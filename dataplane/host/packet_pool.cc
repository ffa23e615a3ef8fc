#include "dataplane/host/packet_pool.h"

#include <algorithm>
#include <rte_errno.h>
#include <stdexcept>

namespace gradcube::dataplane {

PacketPool::PacketPool(const PacketPoolOptions& options) : pool_(nullptr) {
  const std::uint32_t data_room = RTE_PKTMBUF_HEADROOM + options.frame_bytes;
  if (data_room > UINT16_MAX) {
    throw std::runtime_error("packet pool " + options.name + ": a frame of " +
                             std::to_string(options.frame_bytes) +
                             " bytes does not fit into one packet buffer (at most " +
                             std::to_string(UINT16_MAX - RTE_PKTMBUF_HEADROOM) + " bytes)");
  }
  // DPDK refuses a cache that can hold most of the pool.
  const std::uint32_t cache =
      std::min({options.cache, std::uint32_t{RTE_MEMPOOL_CACHE_MAX_SIZE}, options.count / 4});
  pool_ = rte_pktmbuf_pool_create(options.name.c_str(), options.count, cache, 0,
                                  static_cast<std::uint16_t>(data_room), options.socket);
  if (pool_ == nullptr) {
    throw std::runtime_error("cannot make packet pool " + options.name + " of " +
                             std::to_string(options.count) + " packets of " +
                             std::to_string(data_room) + " bytes: " + rte_strerror(rte_errno) +
                             " (give DPDK more memory, or use a smaller pool)");
  }
}

PacketPool::~PacketPool() { rte_mempool_free(pool_); }

std::uint64_t PacketPool::bytes() const {
  const std::uint64_t each =
      std::uint64_t{pool_->header_size} + pool_->elt_size + pool_->trailer_size;
  return each * pool_->size;
}

}  // namespace gradcube::dataplane
