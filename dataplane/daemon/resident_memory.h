// How much memory this process takes.
//
// The kernel walks all pages of the process for it, those of the trainers' heaps included, which
// may take long. So what it has said is kept: for a second, and for 100 times as long as it took.
// The control thread, which asks for each status, spends at most 1 % of its time there.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_
#define GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

namespace gradcube::dataplane {

// A number that is costly to read.
class CostlyNumber {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr auto kKept = std::chrono::seconds(1);
  static constexpr int kPauses = 100;  // for each time that it took

  CostlyNumber(std::function<std::uint64_t()> read, std::function<Time()> clock)
      : read_(std::move(read)), clock_(std::move(clock)) {}

  std::uint64_t value() {
    const Time begin = clock_();
    if (begin < kept_until_) return value_;
    value_ = read_();
    const Time end = clock_();
    kept_until_ = end + std::max<Time::duration>(kKept, kPauses * (end - begin));
    return value_;
  }

 private:
  std::function<std::uint64_t()> read_;
  std::function<Time()> clock_;
  Time kept_until_ = Time::min();
  std::uint64_t value_ = 0;
};

// Bytes of memory that this process itself takes, as of a little while ago: what is resident,
// packet memory included, but for the trainers' shared heaps.
std::uint64_t own_resident_bytes();

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_RESIDENT_MEMORY_H_
