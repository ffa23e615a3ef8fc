// The allocator of a session's shared heap.
//
// Hands out 64-byte aligned blocks of a span of memory. Its tables lie in the trainer's private
// memory, so nothing that is written to the shared memory can corrupt them.
//
// Best fit: the smallest free range that holds the block, the lowest of equals; so blocks land on
// memory that was already in use before they touch new pages. A freed block merges with its free
// neighbours at once. allocate and release cost O(log ranges).
//
// Memory. A free range keeps its pages, because the next step of the training allocates the same
// sizes again, and page faults are expensive; but once all free ranges together may hold more than
// `keep_bytes` of touched pages, a freed range of kGiveBackBytes or more gives its whole pages back
// to the system.
//
// Huge pages. The first time that a block covers a whole huge page of the memory, allocate() asks
// the system to back it by one (trainer/shared_mapping.h): so the gradients take fewer page faults
// and less time to walk through. That memory is taken at once, whether or not it is used. Pages
// that were given back are asked for anew.
//
// Any thread. Throws std::bad_alloc only when the trainer's private memory is exhausted.
#ifndef GRADCUBE_TRAINER_SRC_HEAP_H_
#define GRADCUBE_TRAINER_SRC_HEAP_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace gradcube::trainer {

class Heap {
 public:
  static constexpr std::size_t kAlignment = 64;
  static constexpr std::size_t kGiveBackBytes = std::size_t{1} << 20;
  static constexpr std::size_t kDefaultKeepBytes = std::size_t{256} << 20;

  // `memory` must outlive the heap and begin at a page. To give pages back it must be a shared,
  // writable mapping.
  explicit Heap(std::span<std::byte> memory, std::size_t keep_bytes = kDefaultKeepBytes);

  // A block of at least `bytes` bytes (at least kAlignment); null when no free range is that large.
  void* allocate(std::size_t bytes);

  // False, and nothing happens, when `block` is not the start of an allocated block.
  bool release(void* block);

  // True when `address` points into the heap's memory, allocated or not.
  bool contains(const void* address) const;

  // The allocated block that `address` points into; empty when there is none.
  std::span<std::byte> block_of(const void* address) const;

  std::size_t capacity() const { return memory_.size(); }
  std::size_t used() const;
  std::size_t largest_free() const;
  std::size_t free_ranges() const;

  std::mutex& mutex() { return mutex_; }

 private:
  struct FreeRange {
    std::size_t bytes;
    std::size_t touched;  // the bytes after these, up to the end, have no pages
  };
  using FreeRanges = std::map<std::size_t, FreeRange>;  // by offset

  std::size_t offset_of(const void* address) const;
  void insert_free(std::size_t offset, FreeRange range);
  FreeRange take_free(FreeRanges::iterator range);
  std::span<std::byte> take_unasked(std::size_t offset, std::size_t bytes);
  void give_back(std::size_t offset, FreeRange& range);

  const std::span<std::byte> memory_;
  const std::size_t keep_bytes_;
  mutable std::mutex mutex_;  // guards all below
  std::size_t used_ = 0;
  std::size_t touched_free_ = 0;  // the sum of the free ranges' touched
  FreeRanges free_;
  std::set<std::pair<std::size_t, std::size_t>> free_by_size_;  // (bytes, offset)
  std::map<std::size_t, std::size_t> blocks_;                   // offset -> bytes
  std::vector<bool> asked_;  // by place: whether a huge page was asked for since it has no pages
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_HEAP_H_
