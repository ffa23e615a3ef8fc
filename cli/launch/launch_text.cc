#include "cli/launch/launch_text.h"

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

void LaunchLines::take(std::string_view bytes, std::string* out) {
  while (!bytes.empty()) {
    if (after_return_ && bytes.front() == '\n') {
      out->push_back('\n');
      bytes.remove_prefix(1);
    }
    after_return_ = false;
    const std::size_t end = bytes.find_first_of("\r\n");
    if (end == std::string_view::npos) break;
    partial_.append(bytes.substr(0, end + 1));
    put(partial_, out);
    partial_.clear();
    after_return_ = bytes[end] == '\r';
    bytes.remove_prefix(end + 1);
  }
  partial_.append(bytes);
  while (partial_.size() >= kLongestLine) {
    put_unended(std::string_view(partial_).substr(0, kLongestLine), out);
    partial_.erase(0, kLongestLine);
  }
}

void LaunchLines::finish(std::string* out) {
  if (!partial_.empty()) put_unended(partial_, out);
  partial_.clear();
}

void LaunchLines::put(std::string_view line, std::string* out) const {
  if (line != "\r") out->append(mark_);  // which would be overwritten by what follows
  out->append(line);
}

void LaunchLines::put_unended(std::string_view text, std::string* out) const {
  put(text, out);
  if (!mark_.empty()) out->push_back('\n');  // the next mark begins a line
}

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
