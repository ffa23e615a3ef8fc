// The round-trip time of one flow: smoothed, its deviation (RFC 6298) and its minimum.
//
// The owner adds samples only of segments that were sent once (Karn's rule). A sample contains the
// time that the peer waited before it acknowledged.
//
// The minimum is that of the last 5 to 10 s of samples: of this period of 5 s and of the one before
// (BBR's window is 10 s, too). A training job pauses its traffic in each iteration, commonly every
// few seconds or less, and the first segments after a pause meet empty queues. So a period contains
// a sample of the bare path: a queue that stands for a while is not taken for the path. A path that
// has become longer is known after 10 s. Without samples the minimum stays what it was.
#ifndef GRADCUBE_PROTOCOL_RTT_H_
#define GRADCUBE_PROTOCOL_RTT_H_

#include <algorithm>

#include "protocol/time.h"

namespace gradcube::protocol {

class RttEstimator {
 public:
  // `initial` stands for the smoothed value and the minimum until the first sample.
  explicit constexpr RttEstimator(Nanoseconds initial)
      : smoothed_(initial), deviation_(initial / 2), minimum_(initial) {}

  // A sample that is not positive is taken as 1 ns: a coarse virtual clock may not have moved.
  // now: the owner's clock, which never decreases.
  constexpr void add(Nanoseconds sample, Nanoseconds now) {
    sample = std::max<Nanoseconds>(sample, 1);
    if (!measured_) {
      measured_ = true;
      smoothed_ = sample;
      deviation_ = sample / 2;
      minimum_ = sample;
      period_end_ = now + kPeriod;
      return;
    }
    take_minimum(sample, now);
    const Nanoseconds error = sample - smoothed_;
    deviation_ += ((error < 0 ? -error : error) - deviation_) / 4;
    smoothed_ += error / 8;
  }

  constexpr bool measured() const { return measured_; }
  constexpr Nanoseconds smoothed() const { return smoothed_; }
  constexpr Nanoseconds deviation() const { return deviation_; }
  constexpr Nanoseconds minimum() const { return std::min(minimum_, minimum_before_); }

 private:
  static constexpr Nanoseconds kPeriod = 5'000 * kMillisecond;

  constexpr void take_minimum(Nanoseconds sample, Nanoseconds now) {
    if (now < period_end_) {
      minimum_ = std::min(minimum_, sample);
      return;
    }
    const bool next_period = now - period_end_ < kPeriod;
    minimum_before_ = next_period ? minimum_ : kNever;
    minimum_ = sample;
    period_end_ = next_period ? period_end_ + kPeriod : now + kPeriod;
  }

  Nanoseconds smoothed_;
  Nanoseconds deviation_;
  Nanoseconds minimum_;                  // of this period
  Nanoseconds minimum_before_ = kNever;  // of the one before
  Nanoseconds period_end_ = 0;
  bool measured_ = false;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_RTT_H_
