// A file descriptor that closes itself. It is never that of standard input, output or error: a
// program that has closed one of these, and prints all the same, would write into it.
//
// Any thread, one at a time.
#ifndef GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_
#define GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_

namespace gradcube::control {

class Descriptor {
 public:
  // Owns `value`, or in its place a duplicate that is above 2; -1 where that cannot be made, with
  // errno.
  explicit Descriptor(int value = -1) : value_(value > 2 ? value : above_standard(value)) {}
  ~Descriptor() { reset(); }
  Descriptor(Descriptor&& other) noexcept : value_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept;
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return value_; }
  bool valid() const { return value_ >= 0; }
  int release();
  void reset();

 private:
  static int above_standard(int value);

  int value_;
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_BASE_DESCRIPTOR_H_
