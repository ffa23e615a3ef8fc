// What processes write, on its way to this command's own output: lines that tell whose they are,
// and an outlet that never waits.
#ifndef GRADCUBE_CLI_LAUNCH_LAUNCH_TEXT_H_
#define GRADCUBE_CLI_LAUNCH_LAUNCH_TEXT_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

namespace gradcube::cli {

// Cuts what a process writes into lines and marks each, so that the lines of many processes stay
// whole beside each other and tell whose they are.
//
// No byte is changed, whatever it encodes; marks are put in. A line ends with \n, \r or \r\n: a
// progress bar, which goes back to the line's begin by \r, is passed on as it moves. What has no
// end yet is kept until it has, at most kLongestLine: then it is passed on as a line of its own.
// With an empty mark nothing is put in at all.
//
// One thread at a time; no I/O.
class LaunchLines {
 public:
  static constexpr std::size_t kLongestLine = 64 << 10;

  // mark: "[3] ", or empty.
  explicit LaunchLines(std::string mark) : mark_(std::move(mark)) {}

  // Appends the lines to *out that the next bytes of the stream end.
  void take(std::string_view bytes, std::string* out);

  // The stream has ended: appends what is left, as a line.
  void finish(std::string* out);

 private:
  void put(std::string_view line, std::string* out) const;
  void put_unended(std::string_view text, std::string* out) const;

  std::string mark_;
  std::string partial_;        // has no line end
  bool after_return_ = false;  // a \n would belong to the line before
};

// Text on its way to a descriptor that may be slow: a terminal, a pipe to a pager.
//
// put() never waits, and write_some() writes only what is taken at once, so whoever uses it can
// still answer signals. Leave the descriptor's flags alone: others share it. What cannot be written
// any more is dropped.
//
// One thread. SIGPIPE has to be ignored.
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

#endif  // GRADCUBE_CLI_LAUNCH_LAUNCH_TEXT_H_
