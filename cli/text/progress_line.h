// A line on the terminal that says what a command is doing and for how long, once that takes more
// than a moment. It overwrites itself, and is gone when the work has ended. Nothing is written
// where nobody watches: into files and pipes.
//
// Threads: a thread of its own writes it, as the work need not look up, and takes no signals.
// Whoever makes it prints nothing on the same terminal until it has ended.
#ifndef GRADCUBE_CLI_TEXT_PROGRESS_LINE_H_
#define GRADCUBE_CLI_TEXT_PROGRESS_LINE_H_

#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>

namespace gradcube::cli {

class ProgressLine {
 public:
  static constexpr std::chrono::milliseconds kMoment{1000};

  // text: what is being done; the thread asks again each time. What it refers to outlives this.
  explicit ProgressLine(std::function<std::string()> text,
                        std::chrono::milliseconds moment = kMoment, int output = STDERR_FILENO);

 private:
  std::jthread writer_;
};

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_TEXT_PROGRESS_LINE_H_
