#include "dataplane/host/doorbell.h"

#include <cerrno>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace gradcube::dataplane {

Doorbell::Doorbell() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make an eventfd to wake a poller (raise ulimit -n)");
  }
}

Doorbell::~Doorbell() { close(descriptor_); }

void Doorbell::wake() {
  const std::uint64_t one = 1;
  // A full counter has been rung already.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

bool Doorbell::finish_wait() {
  asleep_.store(false, std::memory_order_relaxed);
  std::uint64_t rings = 0;
  return read(descriptor_, &rings, sizeof(rings)) == static_cast<ssize_t>(sizeof(rings));
}

}  // namespace gradcube::dataplane
