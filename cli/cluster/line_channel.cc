#include "cli/cluster/line_channel.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <unistd.h>
#include <utility>

namespace gradcube::cli {
namespace {

LineEnd wait_for(int descriptor, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return LineEnd::timed_out;
    pollfd poll_set{.fd = descriptor, .events = POLLIN, .revents = 0};
    const int ready = poll(&poll_set, 1, static_cast<int>(std::min<long>(left.count(), 60000)));
    if (ready > 0) return LineEnd::line;
    if (ready < 0 && errno != EINTR) return LineEnd::failed;
  }
}

// What comes next, once more than nothing is there.
LineEnd read_some(int descriptor, Deadline deadline, std::string* arrived) {
  char chunk[65536];
  for (;;) {
    if (const LineEnd ready = wait_for(descriptor, deadline); ready != LineEnd::line) {
      return ready;
    }
    const ssize_t length = read(descriptor, chunk, sizeof chunk);
    if (length == 0) return LineEnd::closed;
    if (length > 0) {
      arrived->assign(chunk, static_cast<std::size_t>(length));
      return LineEnd::line;
    }
    if (errno != EINTR && errno != EAGAIN) return LineEnd::failed;
  }
}

}  // namespace

LineEnd read_line(int descriptor, Deadline deadline, std::size_t limit, std::string* text,
                  std::string* rest) {
  std::string arrived = rest == nullptr ? "" : std::exchange(*rest, "");
  for (;;) {
    if (arrived.empty()) {
      const LineEnd end = read_some(descriptor, deadline, &arrived);
      if (end != LineEnd::line) return end;
    }
    const std::size_t newline = arrived.find('\n');
    text->append(arrived, 0, newline);
    if (text->size() > limit) return LineEnd::too_long;
    if (newline != std::string::npos) {
      if (rest != nullptr) *rest = arrived.substr(newline + 1);
      return LineEnd::line;
    }
    arrived.clear();
  }
}

}  // namespace gradcube::cli
