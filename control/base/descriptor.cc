#include "control/base/descriptor.h"

#include <cerrno>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

namespace gradcube::control {

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  if (this != &other) {
    reset();
    value_ = other.release();
  }
  return *this;
}

int Descriptor::above_standard(int value) {
  if (value < 0) return value;
  const bool ends_with_exec = (fcntl(value, F_GETFD) & FD_CLOEXEC) != 0;
  const int above = fcntl(value, ends_with_exec ? F_DUPFD_CLOEXEC : F_DUPFD, STDERR_FILENO + 1);
  const int error = errno;
  close(value);
  errno = error;
  return above;
}

int Descriptor::release() { return std::exchange(value_, -1); }

void Descriptor::reset() {
  if (value_ >= 0) close(value_);
  value_ = -1;
}

}  // namespace gradcube::control
