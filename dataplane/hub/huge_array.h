// An array of zeros in anonymous memory with huge pages, where the system has some: with pages of
// 4 KiB every page costs a walk through the page tables, and stops the hardware's prefetching
// (docs/performance.md). All its pages are there when it has been made.
//
// Owned by one thread at a time.
#ifndef GRADCUBE_DATAPLANE_HUB_HUGE_ARRAY_H_
#define GRADCUBE_DATAPLANE_HUB_HUGE_ARRAY_H_

#include <cstddef>
#include <cstring>
#include <new>
#include <sys/mman.h>
#include <type_traits>
#include <utility>

namespace gradcube::dataplane {

template <typename T>
class HugeArray {
 public:
  static_assert(std::is_trivial_v<T>);

  HugeArray() = default;
  // Throws std::bad_alloc.
  explicit HugeArray(std::size_t size) : size_(size) {
    if (size == 0) return;
    constexpr std::size_t kHugePage = std::size_t{1} << 21;
    // Small arrays take small pages: a huge one would be mostly empty.
    alignment_ = size * sizeof(T) >= kHugePage ? kHugePage : std::size_t{1} << 12;
    const std::size_t bytes = size * sizeof(T);
    void* memory = ::operator new (bytes, std::align_val_t{alignment_});
    madvise(memory, bytes / alignment_ * alignment_, MADV_HUGEPAGE);
    std::memset(memory, 0, bytes);
    values_ = static_cast<T*>(memory);
  }
  ~HugeArray() {
    if (values_ != nullptr) ::operator delete (values_, std::align_val_t{alignment_});
  }
  HugeArray(HugeArray&& other) noexcept { *this = std::move(other); }
  HugeArray& operator=(HugeArray&& other) noexcept {
    std::swap(values_, other.values_);
    std::swap(size_, other.size_);
    std::swap(alignment_, other.alignment_);
    return *this;
  }

  bool empty() const { return size_ == 0; }
  std::size_t size() const { return size_; }
  T* data() { return values_; }
  const T* data() const { return values_; }
  T& operator[](std::size_t place) { return values_[place]; }
  const T& operator[](std::size_t place) const { return values_[place]; }

 private:
  T* values_ = nullptr;
  std::size_t size_ = 0;
  std::size_t alignment_ = 0;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_HUGE_ARRAY_H_
