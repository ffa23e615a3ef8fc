// Keys that one thread tells others of, each once, in order. Fixed memory, no lock: a key is told
// again only when all readers have read it and its round has ended, so there are never more unread
// ones than keys.
//
// One thread calls tell(); each reader has a Reader of its own.
#ifndef GRADCUBE_DATAPLANE_HUB_KEY_LOG_H_
#define GRADCUBE_DATAPLANE_HUB_KEY_LOG_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace gradcube::dataplane {

class KeyLog {
 public:
  explicit KeyLog(std::size_t keys) : entries_(keys) {}

  // What was written before is visible to who reads the key.
  void tell(std::uint32_t key) {
    const std::uint64_t tail = tail_.load(std::memory_order_relaxed);
    entries_[tail % entries_.size()] = key;
    tail_.store(tail + 1, std::memory_order_release);
  }

  class Reader {
   public:
    explicit Reader(const KeyLog& log) : log_(&log) {}

    bool any() const { return log_->tail_.load(std::memory_order_acquire) != read_; }
    std::optional<std::uint32_t> next() {
      if (!any()) return std::nullopt;
      return log_->entries_[read_++ % log_->entries_.size()];
    }

   private:
    const KeyLog* log_;
    std::uint64_t read_ = 0;
  };

 private:
  static constexpr std::size_t kCacheLine = 64;

  std::vector<std::uint32_t> entries_;
  alignas(kCacheLine) std::atomic<std::uint64_t> tail_{0};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HUB_KEY_LOG_H_
