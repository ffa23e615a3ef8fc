// Memory for the kernels' tests.
#ifndef GRADCUBE_TESTS_UNIT_AGGREGATION_ARRAYS_H_
#define GRADCUBE_TESTS_UNIT_AGGREGATION_ARRAYS_H_

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "aggregation/element.h"
#include "tests/unit/aggregation/oracle.h"

namespace gradcube::aggregation::test {

// Element i of an array at any address.
inline Bits element_at(DataType type, const std::byte* array, std::size_t i) {
  Bits bits = 0;
  std::memcpy(&bits, array + i * element_bytes(type), element_bytes(type));
  return bits;
}

// An array that begins `misalignment` bytes behind a multiple of 64, between guard bytes.
class GuardedArray {
 public:
  GuardedArray(DataType type, std::span<const Bits> elements, std::size_t misalignment)
      : size_(elements.size() * element_bytes(type)),
        memory_(size_ + misalignment + 64 + 2 * kGuard, kPattern) {
    void* begin = memory_.data() + kGuard;
    std::size_t space = memory_.size();
    begin_ = static_cast<std::byte*>(std::align(64, 1, begin, space)) + misalignment;
    for (std::size_t i = 0; i < elements.size(); ++i) {
      std::memcpy(begin_ + i * element_bytes(type), &elements[i], element_bytes(type));
    }
  }
  GuardedArray(const GuardedArray&) = delete;
  GuardedArray& operator=(const GuardedArray&) = delete;
  GuardedArray(GuardedArray&&) = default;

  std::byte* data() { return begin_; }

  bool guards_are_intact() const {
    const auto is_pattern = [](std::byte byte) { return byte == kPattern; };
    return std::all_of(memory_.data(), static_cast<const std::byte*>(begin_), is_pattern) &&
           std::all_of(static_cast<const std::byte*>(begin_) + size_,
                       memory_.data() + memory_.size(), is_pattern);
  }

 private:
  static constexpr std::size_t kGuard = 128;
  static constexpr std::byte kPattern{0xa5};

  std::size_t size_;
  std::vector<std::byte> memory_;
  std::byte* begin_ = nullptr;
};

// A page between two that can be neither read nor written.
class FencedPage {
 public:
  FencedPage() : size_(static_cast<std::size_t>(sysconf(_SC_PAGESIZE))) {
    void* mapping = mmap(nullptr, 3 * size_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapping == MAP_FAILED) throw std::bad_alloc();
    mapping_ = static_cast<std::byte*>(mapping);
    if (mprotect(begin(), size_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  }
  ~FencedPage() { munmap(mapping_, 3 * size_); }
  FencedPage(const FencedPage&) = delete;
  FencedPage& operator=(const FencedPage&) = delete;

  std::byte* begin() { return mapping_ + size_; }
  std::byte* end() { return mapping_ + 2 * size_; }

 private:
  std::size_t size_;
  std::byte* mapping_;
};

}  // namespace gradcube::aggregation::test

#endif  // GRADCUBE_TESTS_UNIT_AGGREGATION_ARRAYS_H_
