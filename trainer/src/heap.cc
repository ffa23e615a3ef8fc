#include "trainer/src/heap.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <sys/mman.h>
#include <unistd.h>

#include "trainer/shared_mapping.h"

namespace gradcube::trainer {
namespace {

using shared::kHugePage;

constexpr std::size_t round_down(std::size_t value, std::size_t unit) {
  return value / unit * unit;
}

constexpr std::size_t divide_up(std::size_t value, std::size_t unit) {
  return value / unit + (value % unit != 0 ? 1 : 0);
}

}  // namespace

Heap::Heap(std::span<std::byte> memory, std::size_t keep_bytes)
    : memory_(memory.first(round_down(memory.size(), kAlignment))),
      keep_bytes_(keep_bytes),
      asked_(divide_up(memory_.size(), kHugePage)) {
  if (!memory_.empty()) insert_free(0, {memory_.size(), 0});
}

void* Heap::allocate(std::size_t bytes) {
  if (bytes > memory_.size()) return nullptr;
  const std::size_t wanted = round_down(std::max(bytes, kAlignment) + kAlignment - 1, kAlignment);
  std::unique_lock lock(mutex_);
  const auto fit = free_by_size_.lower_bound({wanted, 0});
  if (fit == free_by_size_.end()) return nullptr;
  const std::size_t offset = fit->second;
  const FreeRange range = take_free(free_.find(offset));
  if (range.bytes > wanted) {
    // The block comes off the range's start, where touched pages are likeliest to be.
    const std::size_t touched = range.touched > wanted ? range.touched - wanted : 0;
    insert_free(offset + wanted, {range.bytes - wanted, touched});
  }
  blocks_.emplace(offset, wanted);
  used_ += wanted;
  const std::span<std::byte> unasked = take_unasked(offset, wanted);
  // Without the lock: it takes long, and the block is the caller's already.
  lock.unlock();
  // A refusal only means that the pages stay small.
  if (!unasked.empty()) shared::take_huge_pages(unasked);
  return memory_.data() + offset;
}

// From the first to the last of the huge pages inside the block that have not been asked for.
std::span<std::byte> Heap::take_unasked(std::size_t offset, std::size_t bytes) {
  std::size_t first = divide_up(offset, kHugePage);
  std::size_t end = (offset + bytes) / kHugePage;
  while (first < end && asked_[first]) ++first;
  while (first < end && asked_[end - 1]) --end;
  if (first >= end) return {};
  std::fill(asked_.begin() + static_cast<std::ptrdiff_t>(first),
            asked_.begin() + static_cast<std::ptrdiff_t>(end), true);
  return memory_.subspan(first * kHugePage, (end - first) * kHugePage);
}

bool Heap::release(void* block) {
  if (!contains(block)) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(offset_of(block));
  if (found == blocks_.end()) return false;
  std::size_t offset = found->first;
  const std::size_t bytes = found->second;
  blocks_.erase(found);
  used_ -= bytes;

  FreeRange merged{bytes, bytes};  // the trainer may have touched every byte
  auto next = free_.lower_bound(offset);
  if (next != free_.end() && next->first == offset + bytes) {
    const auto taken = next++;
    const FreeRange after = take_free(taken);
    merged.bytes += after.bytes;
    merged.touched += after.touched;
  }
  if (next != free_.begin()) {
    const auto previous = std::prev(next);
    if (previous->first + previous->second.bytes == offset) {
      offset = previous->first;
      const FreeRange before = take_free(previous);
      merged.bytes += before.bytes;
      merged.touched += before.bytes;
    }
  }
  if (touched_free_ + merged.touched > keep_bytes_) give_back(offset, merged);
  insert_free(offset, merged);
  return true;
}

void Heap::give_back(std::size_t offset, FreeRange& range) {
  if (range.touched < kGiveBackBytes) return;
  const std::size_t page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t begin = round_down(offset + page - 1, page);
  const std::size_t end = round_down(offset + range.bytes, page);
  // MADV_REMOVE punches a hole into the shared file; MADV_DONTNEED would leave the pages in it. A
  // refusal only means that the pages stay.
  if (begin < end && ::madvise(memory_.data() + begin, end - begin, MADV_REMOVE) == 0) {
    range.touched = 0;
    std::fill(asked_.begin() + static_cast<std::ptrdiff_t>(begin / kHugePage),
              asked_.begin() + static_cast<std::ptrdiff_t>(divide_up(end, kHugePage)), false);
  }
}

bool Heap::contains(const void* address) const {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory_.data());
  return at >= begin && at - begin < memory_.size();
}

std::span<std::byte> Heap::block_of(const void* address) const {
  if (!contains(address)) return {};
  const std::size_t offset = offset_of(address);
  const std::scoped_lock lock(mutex_);
  auto block = blocks_.upper_bound(offset);
  if (block == blocks_.begin()) return {};
  --block;
  if (offset - block->first >= block->second) return {};
  return memory_.subspan(block->first, block->second);
}

std::size_t Heap::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

std::size_t Heap::free_ranges() const {
  const std::scoped_lock lock(mutex_);
  return free_.size();
}

std::size_t Heap::largest_free() const {
  const std::scoped_lock lock(mutex_);
  return free_by_size_.empty() ? 0 : free_by_size_.rbegin()->first;
}

std::size_t Heap::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data());
}

void Heap::insert_free(std::size_t offset, FreeRange range) {
  free_.emplace(offset, range);
  free_by_size_.emplace(range.bytes, offset);
  touched_free_ += range.touched;
}

Heap::FreeRange Heap::take_free(FreeRanges::iterator range) {
  const FreeRange taken = range->second;
  free_by_size_.erase({taken.bytes, range->first});
  touched_free_ -= taken.touched;
  free_.erase(range);
  return taken;
}

}  // namespace gradcube::trainer
