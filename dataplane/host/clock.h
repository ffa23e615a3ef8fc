// Where the data path's time comes from, in nanoseconds from an origin that never moves while the
// process lives.
//
// A poller reads its clock once per iteration and passes the value down. So the virtual call is
// paid once per iteration and not per packet. A simulation replays exactly, because nothing below
// the poller reads a clock.
//
// Threads: each implementation says which threads may call now().
#ifndef GRADCUBE_DATAPLANE_HOST_CLOCK_H_
#define GRADCUBE_DATAPLANE_HOST_CLOCK_H_

#include <cstdint>
#include <rte_cycles.h>

#include "protocol/time.h"

namespace gradcube::dataplane {

using protocol::kNever;
using protocol::Nanoseconds;

class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now() = 0;

  // Whether a long time between two reads may mean that the reader was descheduled.
  virtual bool reader_may_stall() const { return true; }
};

// The processor's time-stamp counter. EAL measures its frequency, so an Eal must exist when a
// TscClock is made. Any thread may read it. The origin is the moment of construction, so that the
// multiplication below keeps its precision for any uptime of the machine.
class TscClock final : public Clock {
 public:
  TscClock()
      : origin_(rte_rdtsc()),
        nanoseconds_per_tick_(
            static_cast<std::uint64_t>(static_cast<double>(std::uint64_t{1} << kFractionBits) *
                                       1e9 / static_cast<double>(rte_get_tsc_hz()))) {}

  std::int64_t now() override {
    const auto ticks = static_cast<unsigned __int128>(rte_rdtsc() - origin_);
    return static_cast<std::int64_t>((ticks * nanoseconds_per_tick_) >> kFractionBits);
  }

 private:
  static constexpr int kFractionBits = 40;

  std::uint64_t origin_;
  std::uint64_t nanoseconds_per_tick_;  // fixed point, kFractionBits after the point
};

// Time that moves only when it is told to. For one thread: that of the simulation that owns it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(std::int64_t start = 0) : now_(start) {}

  std::int64_t now() override { return now_; }
  // A long step is intended.
  bool reader_may_stall() const override { return false; }
  void advance(std::int64_t nanoseconds) { now_ += nanoseconds; }
  // Moves forward to `when`; does nothing if that time has passed.
  void advance_to(std::int64_t when) {
    if (when > now_) now_ = when;
  }

 private:
  std::int64_t now_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_CLOCK_H_
