#include "trainer/src/session/heap.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
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
    : memory_(memory.first(round_down(memory.size(), kAlignment))) {
  extend(usable);
}

void* Heap::allocate(std::size_t bytes) {
  if (bytes > memory_.size()) return nullptr;
  const std::size_t wanted = block_bytes(bytes);
  const std::scoped_lock lock(mutex_);
  const auto fit = free_.lower_bound({wanted, 0});
  if (fit == free_.end()) return nullptr;
  const auto [bytes_there, offset] = *fit;
  // Before anything changes: there may be no memory for it.
  const bool is_split = bytes_there > wanted;
  const auto rest = is_split ? add(offset + wanted, bytes_there - wanted) : ranges_.end();
  ranges_[offset] = {wanted, free_.extract(fit)};
  if (is_split) give(rest);
  used_ += wanted;
  return memory_.data() + offset;
}

std::optional<std::size_t> Heap::missing(std::size_t bytes) const {
  if (bytes > memory_.size()) return std::nullopt;
  const std::size_t wanted = block_bytes(bytes);
  const std::scoped_lock lock(mutex_);
  if (!free_.empty() && free_.rbegin()->first >= wanted) return 0;
  const std::size_t more = wanted - free_at_end();
  if (more > memory_.size() - usable_) return std::nullopt;
  return more;
}

void Heap::extend(std::size_t usable) {
  const std::scoped_lock lock(mutex_);
  const std::size_t end = std::min(round_down(usable, kAlignment), memory_.size());
  if (end <= usable_) return;
  give(add(usable_, end - usable_));
  usable_ = end;
}

bool Heap::release(void* block) noexcept {
  if (!contains(block)) return false;
  const std::scoped_lock lock(mutex_);
  const auto found = ranges_.find(offset_of(block));
  if (found == ranges_.end() || found->second.is_free()) return false;
  used_ -= found->second.bytes;
  give(found);
  return true;
}

// A range that is not free.
Heap::Ranges::iterator Heap::add(std::size_t offset, std::size_t bytes) {
  FreeBySize place;
  place.emplace(bytes, offset);
  return ranges_.emplace(offset, Range{bytes, place.extract(place.begin())}).first;
}

// Makes it free: one range with its free neighbours.
void Heap::give(Ranges::iterator range) noexcept {
  FreeBySize::node_type node = std::move(range->second.node);
  const auto take_in = [this](Ranges::iterator lower, Ranges::iterator upper) {
    lower->second.bytes += upper->second.bytes;
    ranges_.erase(upper);
  };
  const auto unlist = [this](Ranges::iterator free) {
    free_.erase({free->second.bytes, free->first});
  };
  if (const auto next = std::next(range); next != ranges_.end() && next->second.is_free()) {
    unlist(next);
    take_in(range, next);
  }
  if (range != ranges_.begin() && std::prev(range)->second.is_free()) {
    const auto previous = std::prev(range);
    unlist(previous);
    take_in(previous, range);
    range = previous;
  }
  node.value() = {range->second.bytes, range->first};
  free_.insert(std::move(node));
}

// Of the free range that ends where the usable part does.
std::size_t Heap::free_at_end() const {
  if (ranges_.empty() || !ranges_.rbegin()->second.is_free()) return 0;
  return ranges_.rbegin()->second.bytes;
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
  auto range = ranges_.upper_bound(offset);
  if (range == ranges_.begin()) return {};
  --range;
  const auto& [begin, found] = *range;
  if (found.is_free() || offset - begin >= found.bytes) return {};
  return memory_.subspan(begin, found.bytes);
}

std::vector<std::span<const std::byte>> Heap::blocks() const {
  std::vector<std::span<const std::byte>> all;
  const std::scoped_lock lock(mutex_);
  for (const auto& [offset, range] : ranges_) {
    if (!range.is_free()) all.emplace_back(memory_.subspan(offset, range.bytes));
  }
  return all;
}

std::size_t Heap::used() const {
  const std::scoped_lock lock(mutex_);
  return used_;
}

std::size_t Heap::usable() const {
  const std::scoped_lock lock(mutex_);
  return usable_;
}

std::size_t Heap::largest_free() const {
  const std::scoped_lock lock(mutex_);
  const std::size_t at_end = free_at_end() + memory_.size() - usable_;
  return free_.empty() ? at_end : std::max(at_end, free_.rbegin()->first);
}

std::size_t Heap::offset_of(const void* address) const {
  return static_cast<std::size_t>(static_cast<const std::byte*>(address) - memory_.data());
}

}  // namespace gradcube::trainer
