// One line of text from, or to, a descriptor, before a deadline. For the control socket and for the
// daemon's ready pipe.
#ifndef GRADCUBE_CLI_LINE_CHANNEL_H_
#define GRADCUBE_CLI_LINE_CHANNEL_H_

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace gradcube::cli {

using Deadline = std::chrono::steady_clock::time_point;

// A descriptor that closes itself.
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

enum class LineEnd { line, closed, timed_out, too_long, failed };

// Appends to *text what arrives, up to and without the newline. `closed` is the end of the stream
// before one; on `failed` errno tells why. `too_long` is more than `limit` bytes.
LineEnd read_line(int descriptor, Deadline deadline, std::size_t limit, std::string* text);

// `line` when all of it is written; never raises SIGPIPE. For sockets.
LineEnd write_line(int descriptor, Deadline deadline, std::string_view text);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_LINE_CHANNEL_H_
