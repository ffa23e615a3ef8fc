// A number that one thread writes and any thread may read. With a single writer, an addition is a
// plain load and store: no locked instruction on the data path.
#ifndef GRADCUBE_DATAPLANE_HOST_RELAXED_COUNTER_H_
#define GRADCUBE_DATAPLANE_HOST_RELAXED_COUNTER_H_

#include <atomic>
#include <cstdint>

namespace gradcube::dataplane {

class RelaxedCounter {
 public:
  void add(std::uint64_t amount) {
    value_.store(value_.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }
  void raise_to(std::uint64_t value) {
    if (value > value_.load(std::memory_order_relaxed)) {
      value_.store(value, std::memory_order_relaxed);
    }
  }
  std::uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> value_{0};
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_RELAXED_COUNTER_H_
