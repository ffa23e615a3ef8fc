#ifndef GRADCUBE_DATAPLANE_HOST_CLOCK_H_
#define GRADCUBE_DATAPLANE_HOST_CLOCK_H_

#include <cstdint>
#include <rte_cycles.h>

#include "protocol/time.h"

namespace gradcube::dataplane {

using protocol::kNever;
using protocol::Nanoseconds;

/// Where the data path's time comes from, in nanoseconds from an origin that never moves while the
/// process lives. A poller reads it once per round and hands the value down, so the virtual call is
/// paid per round and not per packet, and a simulation replays exactly because nothing below the
/// poller looks at a clock by itself.
///
/// Threads: now() may be called by any thread where the implementation says so.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual std::int64_t now() = 0;

  /// Whether a long time between two reads may mean that the reader was kept from running.
  virtual bool reader_may_stall() const { return true; }
};

/// The processor's time-stamp counter, whose frequency EAL has measured: an Eal must be alive when
/// it is made. Any thread may read it. The origin is the moment of construction, so that the
/// multiplication below keeps its precision however long the machine has been up.
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

/// Time that stands still until it is told to move. For one thread: the simulation that owns it.
class VirtualClock final : public Clock {
 public:
  explicit VirtualClock(std::int64_t start = 0) : now_(start) {}

  std::int64_t now() override { return now_; }
  /// It moves only when told: a long step is meant.
  bool reader_may_stall() const override { return false; }
  void advance(std::int64_t nanoseconds) { now_ += nanoseconds; }
  /// Moves forward to `when`; a time that has passed already changes nothing.
  void advance_to(std::int64_t when) {
    if (when > now_) now_ = when;
  }

 private:
  std::int64_t now_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_HOST_CLOCK_H_
