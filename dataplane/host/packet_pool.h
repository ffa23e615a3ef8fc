#ifndef GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
#define GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_

#include <cstdint>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string>

namespace gradcube::dataplane {

/// How many bytes of headers a header mbuf holds behind DPDK's headroom.
inline constexpr std::uint32_t kHeaderBytes = 128;

struct PacketPoolOptions {
  /// Unique in the process, at most 25 characters (DPDK's limit).
  std::string name;
  /// Packets in the pool; 2^k - 1 wastes no memory.
  std::uint32_t count = 0;
  /// Bytes of frame one mbuf holds behind DPDK's headroom.
  std::uint32_t frame_bytes = kHeaderBytes;
  /// Packets that each lcore keeps for itself, 0..512: they are in use for nobody else, so a pool
  /// that several lcores draw from has to be larger by as many for each of them.
  std::uint32_t cache = 256;
  /// Bytes between the mbuf and its data for the owner's own notes; rounded up to 8.
  std::uint16_t private_bytes = 0;
  /// NUMA node, or SOCKET_ID_ANY.
  int socket = SOCKET_ID_ANY;
};

/// A pool of packet buffers, made at start and destroyed after the last packet came home. There are
/// two uses: headers (frame_bytes = kHeaderBytes; the payload is chained behind as an external
/// buffer in a trainer's memory) and whole frames (frame_bytes = MTU + Ethernet header), into which
/// a NIC receives or a frame is copied.
///
/// Threads: made and destroyed by the control thread; any thread allocates and frees, an lcore
/// through its own cache.
class PacketPool {
 public:
  /// Throws std::runtime_error with what is wrong and what to do about it. Needs an Eal.
  explicit PacketPool(const PacketPoolOptions& options);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  /// An empty packet, or nullptr when the pool is empty.
  rte_mbuf* allocate() { return rte_pktmbuf_alloc(pool_); }
  /// All `count` packets or none of them.
  bool allocate(rte_mbuf** packets, std::uint16_t count) {
    return rte_pktmbuf_alloc_bulk(pool_, packets, count) == 0;
  }

  rte_mempool* get() const { return pool_; }
  std::uint32_t count() const { return pool_->size; }
  /// Packets that are out; walks the caches of all lcores, so not for the data path.
  std::uint32_t in_use() const { return rte_mempool_in_use_count(pool_); }
  /// Memory that the packets take.
  std::uint64_t bytes() const;

 private:
  rte_mempool* pool_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
