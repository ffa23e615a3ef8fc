#include "dataplane/host/doorbell.h"

#include <cstdint>
#include <unistd.h>

namespace gradcube::dataplane {

void Doorbell::wake() {
  const std::uint64_t one = 1;
  // A full counter has been rung already.
  [[maybe_unused]] const ssize_t written = write(descriptor_.get(), &one, sizeof(one));
}

bool Doorbell::finish_wait() {
  asleep_.store(false, std::memory_order_relaxed);
  std::uint64_t rings = 0;
  return read(descriptor_.get(), &rings, sizeof(rings)) == static_cast<ssize_t>(sizeof(rings));
}

}  // namespace gradcube::dataplane
