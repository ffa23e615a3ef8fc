// The allocator of a session's shared heap.
//
// Hands out 64-byte aligned blocks of a span of memory. Its tables lie in the trainer's private
// memory, so nothing that is written to the shared memory can corrupt them.
//
// Best fit: the smallest free range that holds the block, the lowest of equals; so blocks land on
// memory that was already in use before they touch new pages. A freed block merges with its free
// neighbours at once. allocate and release cost O(log ranges).
//
// Memory. Only the usable part of the span, from its beginning, is handed out; its user extends it
// once there is memory behind it. A freed block keeps its pages for later blocks: pages of a sealed
// region cannot be given back (shared_layout.h).
//
// Any thread. Throws std::bad_alloc only when the trainer's private memory is exhausted, and
// changes nothing then. release() takes no memory.
#ifndef GRADCUBE_TRAINER_SRC_SESSION_HEAP_H_
#define GRADCUBE_TRAINER_SRC_SESSION_HEAP_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gradcube::trainer {

class Heap {
 public:
  static constexpr std::size_t kAlignment = 64;

  // `memory` must outlive the heap and begin at a page. Its first `usable` bytes are usable.
  Heap(std::span<std::byte> memory, std::size_t usable);

  // A block of at least `bytes` bytes (at least kAlignment); null when no free range is that large.
  void* allocate(std::size_t bytes);

  // How many bytes more must be usable before allocate() of so many succeeds, as things are now;
  // nothing when all memory would not suffice.
  std::optional<std::size_t> missing(std::size_t bytes) const;

  // Makes the first `usable` bytes usable; no fewer than now.
  void extend(std::size_t usable);

  // False, and nothing happens, when `block` is not the start of an allocated block.
  bool release(void* block) noexcept;

  // True when `address` points into the heap's memory, allocated or not.
  bool contains(const void* address) const;

  // The allocated block that `address` points into; empty when there is none.
  std::span<std::byte> block_of(const void* address) const;

  // All that are allocated.
  std::vector<std::span<const std::byte>> blocks() const;

  std::size_t capacity() const { return memory_.size(); }
  std::size_t usable() const;
  std::size_t used() const;
  std::size_t largest_free() const;  // with what is not usable yet

  std::mutex& mutex() { return mutex_; }

 private:
  using FreeBySize = std::set<std::pair<std::size_t, std::size_t>>;  // (bytes, offset)

  // Of a block, or of what is free.
  struct Range {
    std::size_t bytes = 0;
    // Of an allocated block: what it needs to be listed in free_ again. Empty: it is free.
    FreeBySize::node_type node;

    bool is_free() const { return node.empty(); }
  };
  using Ranges = std::map<std::size_t, Range>;  // by offset

  std::size_t offset_of(const void* address) const;
  Ranges::iterator add(std::size_t offset, std::size_t bytes);
  void give(Ranges::iterator range) noexcept;
  std::size_t free_at_end() const;

  const std::span<std::byte> memory_;
  mutable std::mutex mutex_;  // guards all below
  std::size_t usable_ = 0;
  std::size_t used_ = 0;
  Ranges ranges_;  // of the usable part, without gaps
  FreeBySize free_;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_SESSION_HEAP_H_
