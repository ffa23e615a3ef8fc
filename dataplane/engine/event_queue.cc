#include "dataplane/engine/event_queue.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace gradcube::dataplane {

EventQueue::EventQueue() : descriptor_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(), "cannot create an event descriptor");
  }
  events_.reserve(kCapacity);
}

EventQueue::~EventQueue() { close(descriptor_); }

bool EventQueue::report(const EngineEvent& event) {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock() || events_.size() == kCapacity) return false;
  events_.push_back(event);
  eventfd_write(descriptor_, 1);
  return true;
}

std::vector<EngineEvent> EventQueue::take() {
  eventfd_t rung = 0;
  eventfd_read(descriptor_, &rung);
  std::vector<EngineEvent> taken;
  taken.reserve(kCapacity);
  const std::lock_guard lock(mutex_);
  events_.swap(taken);
  return taken;
}

}  // namespace gradcube::dataplane
