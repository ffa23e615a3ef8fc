#include "cli/cluster/line_channel.h"

#include <algorithm>
#include <cerrno>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

namespace gradcube::cli {
namespace {

LineEnd wait_for(int descriptor, short events, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return LineEnd::timed_out;
    pollfd poll_set{.fd = descriptor, .events = events, .revents = 0};
    const int ready = poll(&poll_set, 1, static_cast<int>(std::min<long>(left.count(), 60000)));
    if (ready > 0) return LineEnd::line;
    if (ready < 0 && errno != EINTR) return LineEnd::failed;
  }
}

}  // namespace

LineEnd read_line(int descriptor, Deadline deadline, std::size_t limit, std::string* text) {
  char chunk[65536];
  for (;;) {
    if (const LineEnd ready = wait_for(descriptor, POLLIN, deadline); ready != LineEnd::line) {
      return ready;
    }
    const ssize_t length = read(descriptor, chunk, sizeof chunk);
    if (length == 0) return LineEnd::closed;
    if (length < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return LineEnd::failed;
    }
    const std::string_view arrived(chunk, static_cast<std::size_t>(length));
    const std::size_t newline = arrived.find('\n');
    text->append(arrived.substr(0, newline));
    if (text->size() > limit) return LineEnd::too_long;
    if (newline != std::string_view::npos) return LineEnd::line;
  }
}

LineEnd write_line(int descriptor, Deadline deadline, std::string_view text) {
  std::string line(text);
  line += '\n';
  std::string_view left = line;
  while (!left.empty()) {
    if (const LineEnd ready = wait_for(descriptor, POLLOUT, deadline); ready != LineEnd::line) {
      return ready;
    }
    const ssize_t length = send(descriptor, left.data(), left.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (length < 0) {
      if (errno == EINTR || errno == EAGAIN) continue;
      return LineEnd::failed;
    }
    left.remove_prefix(static_cast<std::size_t>(length));
  }
  return LineEnd::line;
}

}  // namespace gradcube::cli
