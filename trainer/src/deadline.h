// A point on the monotonic clock until which a blocking call may block, or none.
#ifndef GRADCUBE_TRAINER_SRC_DEADLINE_H_
#define GRADCUBE_TRAINER_SRC_DEADLINE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <time.h>

namespace gradcube::trainer {

class Deadline {
 public:
  // Negative: never.
  static Deadline in_milliseconds(int timeout_ms) {
    constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
    return Deadline(timeout_ms < 0 ? kNever : now() + timeout_ms * kMillisecond);
  }

  bool passed() const { return now() >= at_; }

  // What poll() takes: -1 when there is no limit, else rounded up, so that a wait does not end
  // early.
  int poll_timeout() const {
    if (at_ == std::numeric_limits<std::int64_t>::max()) return -1;
    const std::int64_t left = std::max<std::int64_t>(at_ - now(), 0);
    return static_cast<int>((left + kMillisecond - 1) / kMillisecond);
  }

 private:
  static constexpr std::int64_t kMillisecond = 1'000'000;

  explicit Deadline(std::int64_t at) : at_(at) {}

  static std::int64_t now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * std::int64_t{1'000'000'000} + time.tv_nsec;
  }

  std::int64_t at_;  // nanoseconds
};

}  // namespace gradcube::trainer

#endif
