// Which numbered messages have come already, of a sender that numbers them from 1 on, in order.
//
// A message whose number is more than kRemembered behind the newest counts as come.
// Single-threaded.
#ifndef GRADCUBE_CONTROL_JOBS_REPLAY_WINDOW_H_
#define GRADCUBE_CONTROL_JOBS_REPLAY_WINDOW_H_

#include <algorithm>
#include <bitset>
#include <cstddef>
#include <cstdint>

namespace gradcube::control {

class ReplayWindow {
 public:
  static constexpr std::size_t kRemembered = 1024;

  ReplayWindow() : ReplayWindow(0) {}
  // All numbers up to this one count as come.
  explicit ReplayWindow(std::uint64_t newest) : newest_(newest) { come_.set(); }

  bool has_come(std::uint64_t number) const {
    return number <= newest_ &&
           (newest_ - number >= kRemembered || come_.test(number % kRemembered));
  }

  // Whether it comes for the first time.
  bool take(std::uint64_t number) {
    if (has_come(number)) return false;
    if (number > newest_) {
      const std::uint64_t skipped = std::min(number - newest_, std::uint64_t{kRemembered});
      for (std::uint64_t i = 0; i < skipped; ++i) come_.reset((number - i) % kRemembered);
      newest_ = number;
    }
    come_.set(number % kRemembered);
    return true;
  }

 private:
  std::uint64_t newest_;
  std::bitset<kRemembered> come_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_REPLAY_WINDOW_H_
