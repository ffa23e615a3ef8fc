// A pool of packet buffers, made at start and destroyed after all packets have been returned.
//
// There are two kinds: header pools (frame_bytes = kHeaderBytes; the payload is chained as an
// external buffer in a trainer's memory) and pools of whole frames (frame_bytes = MTU + Ethernet
// header), into which a NIC receives or a frame is copied.
//
// Threads: the control thread makes and destroys it. Any thread allocates and frees, an lcore
// through its own cache.
//
// Errors: the constructor throws std::runtime_error, which says what is wrong and what to do about
// it. An empty pool is no exception: allocate() returns nullptr or false.
#ifndef GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
#define GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_

#include <cstdint>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string>

namespace gradcube::dataplane {

// Bytes of headers that a header mbuf holds after DPDK's headroom.
inline constexpr std::uint32_t kHeaderBytes = 128;

struct PacketPoolOptions {
  // Unique in the process, at most 25 characters (DPDK's limit).
  std::string name;
  // Packets in the pool. 2^k - 1 wastes no memory.
  std::uint32_t count = 0;
  // Bytes of frame that one mbuf holds after DPDK's headroom.
  std::uint32_t frame_bytes = kHeaderBytes;
  // Packets in each lcore's cache, 0..512. Other lcores cannot use them, so a pool that several
  // lcores use must be larger by one cache for each of them.
  std::uint32_t cache = 256;
  // NUMA node, or SOCKET_ID_ANY.
  int socket = SOCKET_ID_ANY;
};

class PacketPool {
 public:
  // Needs an Eal.
  explicit PacketPool(const PacketPoolOptions& options);
  ~PacketPool();
  PacketPool(const PacketPool&) = delete;
  PacketPool& operator=(const PacketPool&) = delete;

  // An empty packet, or nullptr when the pool is empty.
  rte_mbuf* allocate() { return rte_pktmbuf_alloc(pool_); }
  // Allocates all `count` packets, or none.
  bool allocate(rte_mbuf** packets, std::uint16_t count) {
    return rte_pktmbuf_alloc_bulk(pool_, packets, count) == 0;
  }

  rte_mempool* get() const { return pool_; }
  // Memory of the packets.
  std::uint64_t bytes() const;

 private:
  rte_mempool* pool_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
