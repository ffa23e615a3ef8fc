#include "dataplane/doorbell.h"

#include <cerrno>
#include <ctime>
#include <poll.h>
#include <sys/eventfd.h>
#include <system_error>
#include <unistd.h>

namespace gradcube::dataplane {

namespace {
constexpr std::int64_t kNanosecondsPerSecond = 1'000'000'000;
}

Doorbell::Doorbell() : descriptor_(eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)) {
  if (descriptor_ < 0) {
    throw std::system_error(errno, std::generic_category(),
                            "cannot make an eventfd to wake a poller (raise ulimit -n)");
  }
}

Doorbell::~Doorbell() { close(descriptor_); }

void Doorbell::wake() {
  const std::uint64_t one = 1;
  // A counter that is full already is a bell that rings already: the result says nothing new.
  [[maybe_unused]] const ssize_t written = write(descriptor_, &one, sizeof(one));
}

bool Doorbell::answer() {
  stay_awake();
  std::uint64_t rings = 0;
  return read(descriptor_, &rings, sizeof(rings)) == static_cast<ssize_t>(sizeof(rings));
}

bool Doorbell::sleep(std::int64_t nanoseconds) {
  pollfd wanted{descriptor_, POLLIN, 0};
  timespec limit{};
  if (nanoseconds >= 0) {
    limit.tv_sec = nanoseconds / kNanosecondsPerSecond;
    limit.tv_nsec = nanoseconds % kNanosecondsPerSecond;
  }
  // A signal ends the sleep early, which a poller takes as a round with nothing to do.
  ppoll(&wanted, 1, nanoseconds >= 0 ? &limit : nullptr, nullptr);
  return answer();
}

}  // namespace gradcube::dataplane
