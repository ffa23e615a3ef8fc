#include "protocol/timer_wheel.h"

#include <bit>
#include <cassert>

namespace gradcube::protocol {

TimerWheel::TimerWheel(Nanoseconds now, Nanoseconds width, std::size_t slots)
    : origin_(now), width_(width), mask_(0), tick_end_(now + width) {
  assert(width > 0 && slots > 0);
  const std::size_t count = std::bit_ceil(slots);
  mask_ = count - 1;
  slots_ = std::make_unique<TimerEntry[]>(count);
}

void TimerWheel::schedule(TimerEntry& entry, Nanoseconds deadline) {
  entry.unlink();
  if (deadline == kNever) return;
  const Tick due = std::max(tick_of(deadline), tick_);
  entry.link_before(slot(due), deadline);
  first_ = std::min(first_, due);
}

void TimerWheel::splice(TimerEntry& from, TimerEntry& to) {
  if (!from.scheduled()) return;
  to.next_ = from.next_;
  to.previous_ = from.previous_;
  to.next_->previous_ = &to;
  to.previous_->next_ = &to;
  from.previous_ = from.next_ = &from;
}

Nanoseconds TimerWheel::next_expiry() const {
  if (first_ == kNoTick) return kNever;
  Nanoseconds earliest = kNever;
  const Tick rotation = static_cast<Tick>(mask_) + 1;
  const Tick begin = std::max(first_, tick_);
  for (Tick tick = begin; tick < begin + rotation; ++tick) {
    // What is due in a later slot of this rotation is later.
    if (earliest != kNever && tick_of(earliest) < tick) break;
    const TimerEntry& head = slot(tick);
    for (const TimerEntry* entry = head.next_; entry != &head; entry = entry->next_) {
      earliest = std::min(earliest, entry->deadline_);
    }
  }
  first_ = earliest == kNever ? kNoTick : std::max(tick_of(earliest), tick_);
  return first_ == kNoTick ? kNever : origin_ + (first_ + 1) * width_;
}

}  // namespace gradcube::protocol
