// Whether one of a server's links works, by what comes over it.
//
// Neighbours greet each other over each link once in an interval. The caller says what is a sign of
// life: what shows that the neighbour lives and hears this server, so that both ends of a link that
// is broken one way find out. A link is down after kSilentIntervals without any. It is up again
// when there was one in kCalm intervals without a silence between them; in twice as many each time
// that it goes down again within kForget intervals, so that a link that flaps is left alone. At
// first it is taken to be up.
//
// Time is counted in the caller's intervals: while the caller itself stands still, nobody falls
// silent.
//
// Single-threaded, no I/O, no clock.
#ifndef GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_
#define GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_

#include <algorithm>

namespace gradcube::bcube {

class LinkWatch {
 public:
  static constexpr unsigned kSilentIntervals = 3;
  static constexpr unsigned kCalm = 3;
  static constexpr unsigned kMostCalm = 48;
  static constexpr unsigned kForget = 100;

  // One came in this interval.
  void on_sign_of_life() { heard_ = true; }

  // The interval has ended.
  void end_interval() {
    silent_ = heard_ ? 0 : std::min(silent_ + 1, kSilentIntervals);
    if (up_) {
      steady_ = std::min(steady_ + 1, kForget);
      if (!hears()) go_down();
    } else {
      calm_ = hears() ? calm_ + (heard_ ? 1 : 0) : 0;
      up_ = calm_ >= needed_;
    }
    heard_ = false;
  }

  // Whether one came lately.
  bool hears() const { return silent_ < kSilentIntervals; }
  bool up() const { return up_; }

 private:
  void go_down() {
    needed_ = steady_ == kForget ? kCalm : std::min(2 * needed_, kMostCalm);
    up_ = false;
    calm_ = 0;
    steady_ = 0;
  }

  bool up_ = true;
  bool heard_ = false;         // in this interval
  unsigned silent_ = 0;        // intervals
  unsigned calm_ = 0;          // intervals in which it was heard, since it was silent
  unsigned needed_ = kCalm;    // of them until it is up
  unsigned steady_ = kForget;  // intervals since it came up
};

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_LINK_WATCH_H_
