#include "cli/launch/launch_lines.h"

namespace gradcube::cli {

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

}  // namespace gradcube::cli
