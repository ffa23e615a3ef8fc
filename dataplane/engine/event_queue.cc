#include "dataplane/engine/event_queue.h"

namespace gradcube::dataplane {

bool EventQueue::report(const EngineEvent& event) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || events_.size() == kCapacity) return false;
  events_.push_back(event);
  eventfd_write(descriptor_.get(), 1);
  return true;
}

std::vector<EngineEvent> EventQueue::take() {
  eventfd_t rung = 0;
  eventfd_read(descriptor_.get(), &rung);
  std::vector<EngineEvent> taken;
  taken.reserve(kCapacity);
  const std::lock_guard lock(mutex_);
  events_.swap(taken);
  return taken;
}

}  // namespace gradcube::dataplane
