// The clock of the control thread: the system's, without the time in which the thread did not run.
//
// Nodes measure with it how long others are silent. When the whole process stood still (it was
// stopped, the machine slept, other programs had its cores), the others may have spoken all the
// time, and in an embedded cluster they stood still too. So this clock
// advances by kMost at the longest in a round of the control thread's loop, which takes 20 ms when
// nothing happens: nobody is taken for silent in a round in which nobody could be heard.
//
// Threads: the control thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PROCESS_ATTENDED_CLOCK_H_
#define GRADCUBE_DATAPLANE_DAEMON_PROCESS_ATTENDED_CLOCK_H_

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

  // To be called once in every round of the thread's loop.
  void advance() {
    const SteadyClock::time_point read = system_();
    attended_ += std::min<SteadyClock::duration>(read - last_, kMost);
    last_ = read;
  }
  // The same throughout a round.
  control::Instant now() const { return std::chrono::duration_cast<control::Instant>(attended_); }

 private:
  std::function<SteadyClock::time_point()> system_;
  SteadyClock::time_point last_;
  // Not 0: what has not happened yet must not seem to be now.
  SteadyClock::duration attended_ = std::chrono::hours(1);
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PROCESS_ATTENDED_CLOCK_H_
