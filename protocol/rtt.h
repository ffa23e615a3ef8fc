// The round-trip time of one flow: smoothed, its deviation (RFC 6298) and its minimum.
//
// The owner adds samples only of segments that were sent once (Karn's rule). A sample contains the
// time that the peer waited before it acknowledged.
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
  constexpr void add(Nanoseconds sample) {
    sample = std::max<Nanoseconds>(sample, 1);
    if (!measured_) {
      measured_ = true;
      smoothed_ = sample;
      deviation_ = sample / 2;
      minimum_ = sample;
      return;
    }
    const Nanoseconds error = sample - smoothed_;
    deviation_ += ((error < 0 ? -error : error) - deviation_) / 4;
    smoothed_ += error / 8;
    minimum_ = std::min(minimum_, sample);
  }

  constexpr bool measured() const { return measured_; }
  constexpr Nanoseconds smoothed() const { return smoothed_; }
  constexpr Nanoseconds deviation() const { return deviation_; }
  constexpr Nanoseconds minimum() const { return minimum_; }

 private:
  Nanoseconds smoothed_;
  Nanoseconds deviation_;
  Nanoseconds minimum_;
  bool measured_ = false;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_RTT_H_
