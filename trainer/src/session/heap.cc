#include "trainer/src/session/heap.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <utility>

namespace gradcube::trainer {
namespace {

constexpr std::size_t round_down(std::size_t value, std::size_t unit) {
  return value / unit * unit;
}

std::size_t block_bytes(std::size_t bytes) {
  return round_down(std::max(bytes, Heap::kAlignment) + Heap::kAlignment - 1, Heap::kAlignment);
}

}  // namespace

Heap::Heap(std::span<std::byte> memory, std::size_t usable)
    : memory_(memory.first(round_down(memory.size(), kAlignment))), usable_(0) {
  extend(usable);
}

void* Heap::allocate(std::size_t bytes) {
  if (bytes > memory_.size()) return nullptr;
  const std::size_t wanted = block_bytes(bytes);
  const std::scoped_lock lock(mutex_);
  const auto fit = free_by_size_.lower_bound({wanted, 0});
  if (fit == free_by_size_.end()) return nullptr;
  const std::size_t offset = fit->second;
  blocks_.emplace(offset, wanted);  // before anything changes: there may be no memory for it
  const auto range = free_.find(offset);
  if (range->second > wanted) {
    change_free(range, offset + wanted, range->second - wanted);
  } else {
    take_free(range);
  }
  used_ += wanted;
  return memory_.data() + offset;
}

std::optional<std::size_t> Heap::missing(std::size_t bytes) const {
  if (bytes > memory_.size()) return std::nullopt;
  const std::size_t wanted = block_bytes(bytes);
  const std::scoped_lock lock(mutex_);
  if (!free_by_size_.empty() && free_by_size_.rbegin()->first >= wanted) return 0;
  const std::size_t more = wanted - free_at_end();
  if (more > memory_.size() - usable_) return std::nullopt;
  return more;
}

void Heap::extend(std::size_t usable) {
  const std::scoped_lock lock(mutex_);
  const std::size_t end = std::min(round_down(usable, kAlignment), memory_.size());
  if (end <= usable_) return;
  give(usable_, end - usable_);
  usable_ = end;
}

bool Heap::release(void* block) noexcept {
  if (!contains(block)) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = blocks_.find(offset_of(block));
  if (found == blocks_.end()) return false;
  const auto [offset, bytes] = *found;
  blocks_.erase(found);
  used_ -= bytes;
  try {
    give(offset, bytes);
  } catch (const std::bad_alloc&) {
    // There is no private memory to note the range in: it is lost.
  }
  return true;
}

// Merges with its free neighbours. Takes memory only where it has none.
void Heap::give(std::size_t offset, std::size_t bytes) {
  const auto next = free_.lower_bound(offset);
  const auto previous = next == free_.begin() ? free_.end() : std::prev(next);
  const bool meets_next = next != free_.end() && next->first == offset + bytes;
  const bool meets_previous =
      previous != free_.end() && previous->first + previous->second == offset;
  if (meets_next) bytes += next->second;
  if (meets_previous) {
    if (meets_next) take_free(next);
    change_free(previous, previous->first, previous->second + bytes);
  } else if (meets_next) {
    change_free(next, offset, bytes);
  } else {
    insert_free(offset, bytes);
  }
}

// Of the free range that ends where the usable part does.
std::size_t Heap::free_at_end() const {
  if (free_.empty()) return 0;
  const auto& [offset, bytes] = *free_.rbegin();
  return offset + bytes == usable_ ? bytes : 0;
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

std::vector<std::span<const std::byte>> Heap::blocks() const {
  std::vector<std::span<const std::byte>> all;
  const std::scoped_lock lock(mutex_);
  all.reserve(blocks_.size());
  for (const auto& [offset, bytes] : blocks_) all.emplace_back(memory_.subspan(offset, bytes));
  return all;
}

std::size_t Heap::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

std::size_t Heap::free_ranges() const {
  const std::scoped_lock lock(mutex_);
  return free_.size();
}

std::size_t Heap::usable() const {
  const std::scoped_lock lock(mutex_);
  return usable_;
}

std::size_t Heap::largest_free() const {
  const std::scoped_lock lock(mutex_);
  const std::size_t at_end = free_at_end() + memory_.size() - usable_;
  return free_by_size_.empty() ? at_end : std::max(at_end, free_by_size_.rbegin()->first);
}

std::size_t Heap::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data());
}

void Heap::insert_free(std::size_t offset, std::size_t bytes) {
  const auto by_size = free_by_size_.emplace(bytes, offset).first;
  try {
    free_.emplace(offset, bytes);
  } catch (const std::bad_alloc&) {
    free_by_size_.erase(by_size);
    throw;
  }
}

// Takes no memory.
void Heap::change_free(FreeRanges::iterator range, std::size_t offset, std::size_t bytes) {
  auto by_size = free_by_size_.extract({range->second, range->first});
  by_size.value() = {bytes, offset};
  free_by_size_.insert(std::move(by_size));
  auto by_offset = free_.extract(range);
  by_offset.key() = offset;
  by_offset.mapped() = bytes;
  free_.insert(std::move(by_offset));
}

void Heap::take_free(FreeRanges::iterator range) {
  free_by_size_.erase({range->second, range->first});
  free_.erase(range);
}

}  // namespace gradcube::trainer
