// A file descriptor that closes itself. Owned by one object at a time; moves, never copies.
#ifndef GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_
#define GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_

#include <unistd.h>
#include <utility>

namespace gradcube::trainer {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() { reset(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  void reset() {
    if (fd_ >= 0) ::close(std::exchange(fd_, -1));
  }

 private:
  int fd_ = -1;
};

}  // namespace gradcube::trainer

#endif  // GRADCUBE_TRAINER_SRC_BASE_DESCRIPTOR_H_
