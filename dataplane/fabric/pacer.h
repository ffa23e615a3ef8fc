// Lets frames pass no faster than a wire of some rate would carry them, but for a small burst. The
// queues behind it then stay as short as that burst.
//
// A frame may pass while what has passed before it would still occupy the wire for no more than the
// burst less one full frame. So in any time t no more than burst + rate x t passes, in bytes on the
// wire: frames with kWireOverheadBytes.
//
// Plain values; one thread.
#ifndef GRADCUBE_DATAPLANE_FABRIC_PACER_H_
#define GRADCUBE_DATAPLANE_FABRIC_PACER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "dataplane/fabric/link_clock.h"
#include "dataplane/host/clock.h"

namespace gradcube::dataplane {

class Pacer {
 public:
  // The burst is what passes in this time, but at least two full frames. A poller that sleeps wakes
  // early enough.
  static constexpr Nanoseconds kBurst = 100'000;

  // 0 bits per second: everything passes. Otherwise at least LinkClock::kMinRate.
  Pacer(std::uint64_t bits_per_second, std::uint32_t full_frame_wire_bytes)
      : wire_(bits_per_second),
        frame_time_(time_of(bits_per_second, full_frame_wire_bytes)),
        slack_(std::max(kBurst - frame_time_, frame_time_)) {}

  bool limits() const { return frame_time_ != 0; }
  // Full frames that may pass now; of shorter ones more may.
  std::uint32_t room(Nanoseconds now) const {
    if (!may_pass(now)) return 0;
    if (frame_time_ == 0) return UINT32_MAX;
    return static_cast<std::uint32_t>((slack_ - wire_.busy_for(now)) / frame_time_) + 1;
  }
  bool may_pass(Nanoseconds now) const { return wire_.busy_for(now) <= slack_; }
  void pass(Nanoseconds now, std::uint32_t wire_bytes) { wire_.carry(now, wire_bytes); }

  // When a frame may pass again; kNever if one may now.
  Nanoseconds next_room(Nanoseconds now) const {
    return may_pass(now) ? kNever : now + wire_.busy_for(now) - slack_;
  }

 private:
  // Rounded up.
  static Nanoseconds time_of(std::uint64_t bits_per_second, std::uint32_t wire_bytes) {
    if (bits_per_second == 0) return 0;
    return static_cast<Nanoseconds>((wire_bytes * 8'000'000'000 + bits_per_second - 1) /
                                    bits_per_second);
  }

  LinkClock wire_;
  Nanoseconds frame_time_;
  Nanoseconds slack_;
};

// Of one of a port's queues, which share its rate evenly; 0: not limited. Throws a
// control::UsageError, which names the port, if that is too little for each.
Pacer pacer_of_queue(std::uint64_t bits_per_second, std::size_t queues,
                     std::uint32_t full_frame_wire_bytes, std::string_view port);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_PACER_H_
