#include "dataplane/host/packet_pool.h"

#include <algorithm>
#include <fmt/format.h>
#include <rte_common.h>
#include <rte_errno.h>
#include <rte_mbuf_pool_ops.h>
#include <rte_memory.h>
#include <stdexcept>

namespace gradcube::dataplane {

namespace {

// What is added in one go: some thousand header mbufs, in less than a millisecond.
constexpr std::size_t kMostChunkBytes = std::size_t{2} << 20;

void free_chunk(rte_mempool_memhdr*, void* memory) { rte_free(memory); }

// Of the node, if it has any.
void* memory_on(int node, const char* name, std::size_t bytes, std::size_t alignment) {
  const auto align = static_cast<unsigned>(alignment);
  void* memory = node < 0 ? nullptr : rte_malloc_socket(name, bytes, align, node);
  return memory != nullptr ? memory : rte_malloc_socket(name, bytes, align, SOCKET_ID_ANY);
}

// By which a device reaches it.
rte_iova_t iova_of(const char* address) {
  const rte_memseg* segment = rte_mem_virt2memseg(address, nullptr);
  if (segment == nullptr || segment->iova == RTE_BAD_IOVA) return rte_mem_virt2iova(address);
  return segment->iova + RTE_PTR_DIFF(address, segment->addr);
}

std::runtime_error cannot_make(const std::string& name, std::uint64_t packets, std::uint64_t bytes,
                               const char* why) {
  return std::runtime_error(
      fmt::format("cannot make packet pool {} of {} packets of {} bytes: {} (give DPDK more "
                  "memory, or use a smaller pool)",
                  name, packets, bytes, why));
}

}  // namespace

PacketPool::PacketPool(const PacketPoolOptions& options)
    : name_(options.name), numa_node_(options.numa_node) {
  const std::uint32_t data_room = RTE_PKTMBUF_HEADROOM + options.frame_bytes;
  if (data_room > UINT16_MAX) {
    throw std::runtime_error(
        fmt::format("packet pool {}: a frame of {} bytes does not fit into one packet buffer (at "
                    "most {} bytes)",
                    name_, options.frame_bytes, UINT16_MAX - RTE_PKTMBUF_HEADROOM));
  }
  make(options, static_cast<std::uint16_t>(data_room));
  const std::uint32_t at_start = std::clamp(options.at_start, 1U, options.count);
  try {
    while (made() < at_start) add(make_chunk(at_start - made()));
  } catch (...) {
    rte_mempool_free(pool_);
    throw;
  }
}

// As rte_pktmbuf_pool_create() does it, but without packets.
void PacketPool::make(const PacketPoolOptions& options, std::uint16_t data_room) {
  // DPDK refuses a cache that can hold most of the pool.
  const std::uint32_t cache =
      std::min({options.cache, std::uint32_t{RTE_MEMPOOL_CACHE_MAX_SIZE}, options.count / 4});
  const auto element_bytes = static_cast<unsigned>(sizeof(rte_mbuf)) + data_room;
  pool_ = rte_mempool_create_empty(name_.c_str(), options.count, element_bytes, cache,
                                   sizeof(rte_pktmbuf_pool_private), SOCKET_ID_ANY, 0);
  if (pool_ == nullptr || rte_mempool_set_ops_byname(pool_, rte_mbuf_best_mempool_ops(), nullptr) ||
      rte_mempool_get_page_size(pool_, &page_bytes_) != 0) {
    const int error = rte_errno;
    rte_mempool_free(pool_);
    throw cannot_make(name_, options.count, data_room, rte_strerror(error));
  }
  rte_pktmbuf_pool_private facts{};
  facts.mbuf_data_room_size = data_room;
  rte_pktmbuf_pool_init(pool_, &facts);
}

PacketPool::~PacketPool() {
  // DPDK would take out packet by packet, a cache miss each. What ends as a whole needs no order.
  STAILQ_INIT(&pool_->elt_list);
  pool_->populated_size = 0;
  rte_mempool_free(pool_);
}

PacketPool::Chunk PacketPool::make_chunk(std::uint32_t packets) const {
  const std::size_t each = bytes_of_packet();
  const std::size_t limit = std::max(kMostChunkBytes, each);
  std::size_t bytes = std::min(packets * each, limit);
  std::size_t alignment = RTE_CACHE_LINE_SIZE;
  if (each <= page_bytes_ && page_bytes_ <= limit) {
    const std::size_t in_a_page = page_bytes_ / each;
    bytes = std::min((packets + in_a_page - 1) / in_a_page * page_bytes_, limit);
    alignment = page_bytes_;
  }
  Chunk chunk{
      std::unique_ptr<void, Chunk::Free>(memory_on(numa_node_, name_.c_str(), bytes, alignment)),
      bytes};
  if (chunk.memory == nullptr) {
    throw cannot_make(name_, most(), each, "DPDK has no memory left");
  }
  return chunk;
}

// As rte_mempool_populate_virt() does it, which frees all memory of the pool when it fails, also
// that of packets in use. The pool frees the chunk by its first part.
int PacketPool::populate(char* memory, std::size_t bytes) {
  const auto end_of_page = [&](std::size_t at) {
    if (page_bytes_ == 0) return bytes;
    return std::min(at + page_bytes_ - reinterpret_cast<std::uintptr_t>(memory + at) % page_bytes_,
                    bytes);
  };
  int added = 0;
  for (std::size_t begin = 0, end = 0; begin < bytes; begin = end) {
    const rte_iova_t iova = iova_of(memory + begin);
    end = end_of_page(begin);
    while (end < bytes && iova != RTE_BAD_IOVA && iova_of(memory + end) == iova + (end - begin)) {
      end = end_of_page(end);
    }
    const int made = rte_mempool_populate_iova(pool_, memory + begin, iova, end - begin,
                                               added == 0 ? free_chunk : nullptr, memory);
    if (made < 0) return added > 0 ? added : made;
    added += made;
  }
  return added;
}

void PacketPool::add(Chunk chunk) {
  const int added = populate(static_cast<char*>(chunk.memory.get()), chunk.bytes);
  if (added <= 0) throw cannot_make(name_, most(), bytes_of_packet(), rte_strerror(-added));
  (void)chunk.memory.release();
  rte_mempool_objhdr* header =
      newest_ == nullptr ? STAILQ_FIRST(&pool_->elt_list) : STAILQ_NEXT(newest_, next);
  for (; header != nullptr; header = STAILQ_NEXT(header, next)) {
    rte_pktmbuf_init(pool_, nullptr, reinterpret_cast<char*>(header) + sizeof *header, 0);
    newest_ = header;
  }
}

}  // namespace gradcube::dataplane
