#include "cli/text/progress_line.h"

#include <array>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <string>
#include <thread>
#include <unistd.h>

namespace gradcube::cli {
namespace {

using std::chrono::milliseconds;

// Where a line is written to, and read from.
class Watched {
 public:
  explicit Watched(bool terminal) {
    if (terminal) {
      EXPECT_EQ(openpty(&read_, &write_, nullptr, nullptr, nullptr), 0);
    } else {
      std::array<int, 2> ends{-1, -1};
      EXPECT_EQ(pipe(ends.data()), 0);
      read_ = ends[0];
      write_ = ends[1];
    }
    fcntl(read_, F_SETFL, O_NONBLOCK);
  }
  ~Watched() {
    close(read_);
    close(write_);
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  int output() const { return write_; }
  // All that has been written since the last call.
  std::string text() const {
    std::string all;
    std::array<char, 4096> some{};
    for (;;) {
      const ssize_t bytes = read(read_, some.data(), some.size());
      if (bytes <= 0) return all;
      all.append(some.data(), static_cast<std::size_t>(bytes));
    }
  }
  std::string next_text() const {
    std::string all;
    for (int i = 0; i < 2000 && all.empty(); ++i) {
      std::this_thread::sleep_for(milliseconds(5));
      all = text();
    }
    return all;
  }

 private:
  int read_ = -1;
  int write_ = -1;
};

std::string at_work() { return "at work"; }

TEST(ProgressLine, IsOnTheTerminalWhileTheWorkLastsAndGoneAfterwards) {
  const Watched terminal(true);
  {
    const ProgressLine line(at_work, milliseconds(0), terminal.output());
    EXPECT_NE(terminal.next_text().find("\rat work ... "), std::string::npos);
  }
  EXPECT_TRUE(terminal.text().ends_with("\r\x1b[K"));
}

TEST(ProgressLine, IsNotSeenWhereTheWorkTakesAMoment) {
  const Watched terminal(true);
  { const ProgressLine line(at_work, std::chrono::hours(1), terminal.output()); }
  EXPECT_EQ(terminal.text(), "");
}

TEST(ProgressLine, IsNotWrittenIntoAPipe) {
  const Watched pipe(false);
  {
    const ProgressLine line(at_work, milliseconds(0), pipe.output());
    std::this_thread::sleep_for(milliseconds(50));
  }
  EXPECT_EQ(pipe.text(), "");
}

}  // namespace
}  // namespace gradcube::cli
