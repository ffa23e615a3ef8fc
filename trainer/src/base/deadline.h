// Deadline: a point on the monotonic clock until which a blocking call may block, or none.
// Stopwatch: the time since it was made.
#ifndef GRADCUBE_TRAINER_SRC_BASE_DEADLINE_H_
#define GRADCUBE_TRAINER_SRC_BASE_DEADLINE_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <limits>
#include <time.h>

namespace gradcube::trainer {

inline std::int64_t monotonic_nanoseconds() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
}

class Stopwatch {
 public:
  std::int64_t nanoseconds() const { return monotonic_nanoseconds() - start_; }

 private:
  std::int64_t start_ = monotonic_nanoseconds();
};

class Deadline {
 public:
  // Negative: never.
  static Deadline in_milliseconds(int timeout_ms) {
    return Deadline(timeout_ms < 0 ? kNever : monotonic_nanoseconds() + timeout_ms * kMillisecond);
  }

  bool passed() const { return monotonic_nanoseconds() >= at_; }

  bool never() const { return at_ == kNever; }

  // For condition variables: C++'s steady clock is the monotonic one.
  std::chrono::steady_clock::time_point time_point() const {
    return std::chrono::steady_clock::time_point(std::chrono::nanoseconds(at_));
  }

  // What poll() takes: -1 when there is no limit, else rounded up, so that a wait does not end
  // early.
  int poll_timeout() const {
    if (never()) return -1;
    const std::int64_t left = std::max<std::int64_t>(at_ - monotonic_nanoseconds(), 0);
    return static_cast<int>((left + kMillisecond - 1) / kMillisecond);
  }

 private:
  static constexpr std::int64_t kMillisecond = 1'000'000;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  explicit Deadline(std::int64_t at) : at_(at) {}

  std::int64_t at_;  // nanoseconds
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_DEADLINE_H_
