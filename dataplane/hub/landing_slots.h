// Slots for contributions that wait for others: a stack of those that are free, so that the one
// that was used last is used next.
//
// They lie in anonymous memory with huge pages, where the system has some: with pages of 4 KiB
// every page costs a walk through the page tables, and stops the hardware's prefetching
// (docs/performance.md). All pages are there when it has been made.
//
// One thread. Nothing allocates but the constructor.
#ifndef GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_
#define GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <sys/mman.h>
#include <vector>

namespace gradcube::dataplane {

class LandingSlots {
 public:
  // Throws std::bad_alloc.
  LandingSlots(std::uint32_t slot_bytes, std::uint32_t slots)
      : slot_bytes_(slot_bytes), memory_(zeros(std::size_t{slot_bytes} * slots)) {
    free_.reserve(slots);
    while (slots > 0) free_.push_back(--slots);
  }

  // There is a free one.
  std::uint32_t take() {
    const std::uint32_t slot = free_.back();
    free_.pop_back();
    return slot;
  }
  void give_back(std::uint32_t slot) { free_.push_back(slot); }
  std::uint8_t* at(std::uint32_t slot) { return memory_.get() + std::size_t{slot} * slot_bytes_; }
  const std::uint8_t* at(std::uint32_t slot) const {
    return memory_.get() + std::size_t{slot} * slot_bytes_;
  }

  std::uint64_t bytes() const {
    return std::uint64_t{free_.capacity()} * (slot_bytes_ + sizeof(std::uint32_t));
  }

 private:
  using Memory = std::unique_ptr<std::uint8_t, decltype(&std::free)>;

  static Memory zeros(std::size_t bytes) {
    constexpr std::size_t kHugePage = std::size_t{1} << 21;
    // Small arrays take small pages: a huge one would be mostly empty.
    const std::size_t page = bytes >= kHugePage ? kHugePage : std::size_t{1} << 12;
    const std::size_t whole = (bytes + page - 1) / page * page;
    Memory memory(static_cast<std::uint8_t*>(std::aligned_alloc(page, whole)), &std::free);
    if (memory == nullptr) throw std::bad_alloc();
    madvise(memory.get(), bytes / page * page, MADV_HUGEPAGE);
    std::memset(memory.get(), 0, bytes);
    return memory;
  }

  std::uint32_t slot_bytes_;
  Memory memory_;
  std::vector<std::uint32_t> free_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_LANDING_SLOTS_H_
