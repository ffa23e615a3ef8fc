#include "cli/launch/launch_outlet.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <poll.h>
#include <unistd.h>

namespace gradcube::cli {
namespace {

constexpr std::size_t kFull = 256 << 10;

bool takes_more(int descriptor) {
  pollfd one{.fd = descriptor, .events = POLLOUT, .revents = 0};
  return poll(&one, 1, 0) == 1;
}

}  // namespace

bool LaunchOutlet::is_full() const { return text_.size() - written_ >= kFull; }

void LaunchOutlet::write_some() {
  while (error_ == 0 && has_text() && takes_more(descriptor_)) {
    // A pipe that is ready takes so much without waiting.
    const std::size_t piece = std::min<std::size_t>(text_.size() - written_, PIPE_BUF);
    const ssize_t done = write(descriptor_, text_.data() + written_, piece);
    if (done >= 0) {
      written_ += static_cast<std::size_t>(done);
    } else if (errno == EAGAIN) {
      return;
    } else if (errno != EINTR) {
      error_ = errno;
    }
  }
  if (error_ != 0) written_ = text_.size();
  if (has_text() && written_ < kFull) return;  // not worth moving the rest
  text_.erase(0, written_);
  written_ = 0;
}

}  // namespace gradcube::cli
