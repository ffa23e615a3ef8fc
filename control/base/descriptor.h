// A file descriptor that closes itself.
//
// Any thread, one at a time.
#ifndef GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_
#define GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_

namespace gradcube::control {

class Descriptor {
 public:
  explicit Descriptor(int value = -1) : value_(value) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  int release();
  void reset();

 private:
  int value_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_
