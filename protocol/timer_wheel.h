// A coarse hashed timer wheel. Each engine has one, with one entry per flow and none per packet.
//
// Time is divided into ticks of `width`; tick t is in slot t mod slots. A timer fires when its tick
// is over: never early, and at most one width late, plus the time between two calls of advance(). A
// deadline beyond one rotation stays in its slot until its rotation comes. schedule() and cancel()
// are O(1). advance() is O(1) within a tick, else O(timers in the slots passed). Nothing is
// allocated after construction: the owner keeps the TimerEntry (a member of the flow), whose
// destructor removes it from the wheel. Wheel and entries may be destroyed in any order.
//
// Owned and used by one engine.
#ifndef GRADCUBE_PROTOCOL_TIMER_WHEEL_H_
#define GRADCUBE_PROTOCOL_TIMER_WHEEL_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>

#include "protocol/time.h"

namespace gradcube::protocol {

// A node of a doubly linked ring; linked to itself when it is in no list. Neither copied nor moved.
class TimerEntry {
 public:
  TimerEntry() = default;
  ~TimerEntry() { unlink(); }
  TimerEntry(const TimerEntry&) = delete;
  TimerEntry& operator=(const TimerEntry&) = delete;

  bool scheduled() const { return next_ != this; }
  // kNever when it is not scheduled.
  Nanoseconds deadline() const { return deadline_; }

 private:
  friend class TimerWheel;

  void unlink() {
    previous_->next_ = next_;
    next_->previous_ = previous_;
    previous_ = next_ = this;
    deadline_ = kNever;
  }

  void link_before(TimerEntry& head, Nanoseconds deadline) {
    deadline_ = deadline;
    previous_ = head.previous_;
    next_ = &head;
    previous_->next_ = this;
    head.previous_ = this;
  }

  TimerEntry* previous_ = this;
  TimerEntry* next_ = this;
  Nanoseconds deadline_ = kNever;
};

class TimerWheel {
 public:
  static constexpr Nanoseconds kDefaultWidth = 64 * kMicrosecond;
  static constexpr std::size_t kDefaultSlots = 1024;

  // `slots` is rounded up to a power of two.
  explicit TimerWheel(Nanoseconds now, Nanoseconds width = kDefaultWidth,
                      std::size_t slots = kDefaultSlots);

  // (Re)schedules. A deadline that has passed fires at the end of the present tick; kNever cancels.
  void schedule(TimerEntry& entry, Nanoseconds deadline);
  void cancel(TimerEntry& entry) { entry.unlink(); }

  // Calls callback(TimerEntry&) for every entry that is due, after removing it from the wheel. The
  // callback may schedule, cancel and destroy entries, this one included. A `now` in the past does
  // nothing.
  template <typename Callback>
  void advance(Nanoseconds now, Callback&& callback) {
    if (now < tick_end_) return;
    advance_ticks(now, callback);
  }

  // The earliest time at which advance() has something to do; kNever for an empty wheel. Visits the
  // slots up to that time, and every slot of a wheel without a deadline in the present rotation;
  // the next call begins where this one ended, unless an earlier timer was scheduled. For an engine
  // that is about to sleep, and for a virtual clock that jumps.
  Nanoseconds next_expiry() const;

 private:
  using Tick = std::int64_t;
  static constexpr Tick kNoTick = std::numeric_limits<Tick>::max();

  TimerEntry& slot(Tick tick) const { return slots_[static_cast<std::size_t>(tick) & mask_]; }
  Tick tick_of(Nanoseconds time) const { return (time - origin_) / width_; }

  template <typename Callback>
  void advance_ticks(Nanoseconds now, Callback& callback) {
    const Tick from = tick_;
    const Tick to = tick_of(now);
    // First of all the present tick moves on: what a callback schedules belongs to the future.
    tick_ = to;
    tick_end_ = origin_ + (to + 1) * width_;
    const Tick passed = std::min<Tick>(to - from, static_cast<Tick>(mask_) + 1);
    for (Tick tick = from; tick < from + passed; ++tick) fire_slot(slot(tick), now, callback);
  }

  template <typename Callback>
  void fire_slot(TimerEntry& head, Nanoseconds now, Callback& callback) {
    // Taken out as a whole: what the callbacks put into this slot is not visited, and cancelling
    // works in either list.
    TimerEntry taken;
    splice(head, taken);
    while (taken.scheduled()) {
      TimerEntry& entry = *taken.next_;
      const Nanoseconds deadline = entry.deadline_;
      entry.unlink();
      if (deadline <= now) {
        callback(entry);
      } else {
        entry.link_before(head, deadline);
      }
    }
  }

  static void splice(TimerEntry& from, TimerEntry& to);

  Nanoseconds origin_;
  Nanoseconds width_;
  std::size_t mask_;
  Tick tick_ = 0;  // the present tick
  Nanoseconds tick_end_;
  // No timer is due before this tick. next_expiry() remembers here how far it has looked.
  mutable Tick first_ = kNoTick;
  std::unique_ptr<TimerEntry[]> slots_;  // each the head of its ring
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_TIMER_WHEEL_H_
