// The clock of the control thread: the system's, without the time in which the thread did not run.
//
// Nodes measure with it how long others are silent. When the whole process stood still (it was
// stopped, the machine slept, other programs had its cores), the others may have spoken all the
// time, and in an embedded cluster they stood still too. So this clock advances by kMost at a time
// at the longest. The control thread lets it advance once in every round of its loop, which takes
// 20 ms when nothing happens. In between it stands still: all of a round happens at one instant.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ATTENDED_CLOCK_H_
#define GRADCUBE_DATAPLANE_DAEMON_ATTENDED_CLOCK_H_

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

#include "control/jobs/job_actions.h"

namespace gradcube::dataplane {

class AttendedClock {
 public:
  using SteadyClock = std::chrono::steady_clock;
  static constexpr control::Instant kMost = std::chrono::milliseconds(100);

  explicit AttendedClock(std::function<SteadyClock::time_point()> system = SteadyClock::now)
      : system_(std::move(system)), last_(system_()) {}

  // As of the last advance().
  control::Instant now() const { return std::chrono::duration_cast<control::Instant>(attended_); }
  // By the system's time since the last advance(), at most kMost.
  void advance() {
    const SteadyClock::time_point read = system_();
    attended_ += std::min<SteadyClock::duration>(read - last_, kMost);
    last_ = read;
  }

 private:
  std::function<SteadyClock::time_point()> system_;
  SteadyClock::time_point last_;
  // Not 0: what has not happened yet must not seem to be now.
  SteadyClock::duration attended_ = std::chrono::hours(1);
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ATTENDED_CLOCK_H_
