// Text on its way to a descriptor that may be slow: a terminal, a pipe to a pager.
//
// put() never waits, and write_some() writes only what is taken at once, so whoever uses it can
// still answer signals. Leave the descriptor's flags alone: others share it. What cannot be written
// any more is dropped.
//
// One thread. SIGPIPE has to be ignored.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_OUTLET_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_OUTLET_H_

#include <cstddef>
#include <string>

namespace gradcube::cli {

class LaunchOutlet {
 public:
  explicit LaunchOutlet(int descriptor) : descriptor_(descriptor) {}

  int descriptor() const { return descriptor_; }
  // What is appended to it will be written.
  std::string* text() { return &text_; }
  bool has_text() const { return written_ < text_.size(); }
  // Whoever fills it should wait.
  bool is_full() const;

  void write_some();
  // 0, or the errno of the write that failed.
  int error() const { return error_; }

 private:
  int descriptor_;
  std::string text_;
  std::size_t written_ = 0;
  int error_ = 0;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_OUTLET_H_
