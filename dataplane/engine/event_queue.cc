#include "dataplane/engine/event_queue.h"

namespace gradcube::dataplane {

bool EventQueue::report(const EngineEvent& event) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || events_.size() == kCapacity) return false;
  events_.push_back(event);
  eventfd_write(descriptor_.get(), 1);
  return true;
}

std::optional<EngineEvent> EventQueue::first() {
  const std::lock_guard lock(mutex_);
  return events_.empty() ? std::nullopt : std::optional(events_.front());
}

void EventQueue::drop_first() {
  const std::lock_guard lock(mutex_);
  events_.erase(events_.begin());
}

}  // namespace gradcube::dataplane
