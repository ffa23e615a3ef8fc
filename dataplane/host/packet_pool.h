// A pool of packet buffers, destroyed after all packets have been returned. It is made whole at
// start, or grows chunk by chunk up to a fixed size: memory that no chunk has taken yet is address
// space and nothing else, as long as DPDK runs on ordinary pages.
//
// There are two kinds: header pools (frame_bytes = kHeaderBytes; the payload is chained as an
// external buffer in a trainer's memory) and pools of whole frames (frame_bytes = MTU + Ethernet
// header), into which a NIC receives or a frame is copied.
//
// Threads: the control thread makes and destroys it. Any thread allocates and frees, an lcore
// through its own cache. add() is for a moment in which no other thread allocates.
//
// Errors: the constructor and make_chunk() throw std::runtime_error, which says what is wrong and
// what to do about it. An empty pool is no exception: allocate() returns nullptr or false.
#ifndef GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
#define GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <rte_malloc.h>
#include <rte_mbuf.h>
#include <rte_mempool.h>
#include <string>

namespace gradcube::dataplane {

// Bytes of headers that a header mbuf holds after DPDK's headroom.
inline constexpr std::uint32_t kHeaderBytes = 128;

struct PacketPoolOptions {
  // Unique in the process, at most 25 characters (DPDK's limit).
  std::string name;
  // Packets in the pool, once it has grown as far as it can. 2^k - 1 wastes no memory.
  std::uint32_t count = 0;
  // How many of them are made at start: at least one, or DPDK has no pool.
  std::uint32_t at_start = std::numeric_limits<std::uint32_t>::max();
  // Bytes of frame that one mbuf holds after DPDK's headroom.
  std::uint32_t frame_bytes = kHeaderBytes;
  // Packets in each lcore's cache, 0..512. Other lcores cannot use them, so a pool that several
  // lcores use must be larger by one cache for each of them.
  std::uint32_t cache = 256;
  // Whose huge pages the packets lie in, as long as it has some; -1: any. Where DPDK has none the
  // kernel chooses.
  int numa_node = -1;
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

  // Memory for packets of the pool that are not in it yet. Must not outlive the pool.
  struct Chunk {
    struct Free {
      void operator()(void* memory) const { rte_free(memory); }
    };
    std::unique_ptr<void, Free> memory;
    std::size_t bytes = 0;
  };
  // For at most `packets` packets, and for no more than are quickly added: the caller goes on until
  // made() is enough.
  Chunk make_chunk(std::uint32_t packets) const;
  // Makes the chunk's packets, or as many as DPDK has memory to keep track of; throws where it has
  // not even that for one. Whoever allocates stands still meanwhile; others may free.
  void add(Chunk chunk);

  // Packets that there are, in the pool or out of it; and how many there can be.
  std::uint32_t made() const { return pool_->populated_size; }
  std::uint32_t most() const { return pool_->size; }
  // Packets that are out of the pool; those in the caches of lcores are not. Takes time in the
  // number of lcores. Exact while nobody allocates or frees.
  std::uint32_t in_use() const { return made() - rte_mempool_avail_count(pool_); }

  rte_mempool* get() const { return pool_; }
  int numa_node() const { return numa_node_; }
  // Memory of the packets that there are.
  std::uint64_t bytes() const { return made() * bytes_of_packet(); }
  std::uint64_t bytes_of_packet() const {
    return std::uint64_t{pool_->header_size} + pool_->elt_size + pool_->trailer_size;
  }

 private:
  void make(const PacketPoolOptions& options, std::uint16_t data_room);
  int populate(char* memory, std::size_t bytes);

  std::string name_;
  int numa_node_;
  std::size_t page_bytes_ = 0;            // no packet crosses a page if it is smaller than one
  rte_mempool_objhdr* newest_ = nullptr;  // the last one that was added
  rte_mempool* pool_ = nullptr;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_PACKET_POOL_H_
