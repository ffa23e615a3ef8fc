#include "control/base/descriptor.h"

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

int Descriptor::release() { return std::exchange(value_, -1); }

void Descriptor::reset() {
  if (value_ >= 0) close(value_);
  value_ = -1;
}

}  // namespace gradcube::control
