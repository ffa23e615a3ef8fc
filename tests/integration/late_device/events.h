// What streams tell each other, and the host.
#ifndef GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_EVENTS_H_
#define GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_EVENTS_H_

#include <algorithm>
#include <atomic>
#include <c10/core/Stream.h>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>

#include "tests/integration/late_device/streams.h"

namespace late_device {

class Counter {
 public:
  std::uint64_t next() { return ++asked_; }
  void reach(std::uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    reached_ = std::max(reached_, number);
    changed_.notify_all();
  }
  void wait(std::uint64_t number) {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this, number] { return reached_ >= number; });
  }
  bool is_at(std::uint64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return reached_ >= number;
  }
  std::uint64_t asked() const { return asked_; }

 private:
  std::atomic<std::uint64_t> asked_{0};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t reached_ = 0;
};

using Event = std::shared_ptr<Counter>;

inline void record(const Event& event, const c10::Stream& stream) {
  queue_of(stream).push([event, number = event->next()] { event->reach(number); });
}

inline void block(const Event& event, const c10::Stream& stream) {
  queue_of(stream).push([event, number = event->asked()] { event->wait(number); });
}

// How many of the next queries fail.
inline std::atomic<int> failing_queries{0};

inline bool take_failing_query() {
  int left = failing_queries;
  while (left > 0 && !failing_queries.compare_exchange_weak(left, left - 1)) {
  }
  return left > 0;
}

}  // namespace late_device

#endif  // GRADCUBE_TESTS_INTEGRATION_LATE_DEVICE_EVENTS_H_
