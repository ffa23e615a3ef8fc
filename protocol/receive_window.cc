#include "protocol/receive_window.h"

#include <algorithm>
#include <limits>

namespace gradcube::protocol {

ReceiveWindow::ReceiveWindow(unsigned window, std::uint64_t first,
                             const AcknowledgementSettings& settings)
    : cumulative_(first),
      consumed_(first),
      limit_(first),
      limit_told_(first),
      window_(std::clamp(window, 1U, kWindow)),
      settings_(settings) {}

bool ReceiveWindow::raise_limit(std::uint64_t limit) {
  limit = std::min(limit, most());
  if (limit <= limit_) return false;
  limit_ = limit;
  return true;
}

bool ReceiveWindow::set_consumed(std::uint64_t prefix, Nanoseconds now) {
  prefix = std::min(prefix, cumulative_);
  if (prefix <= consumed_) return false;
  consumed_ = prefix;
  // If something is missing, the news goes with what is told when that has changed. If an
  // acknowledgement waits already, it carries the news; one for a later segment does so, too.
  if (arrivals() == cumulative_ && delayed_until_ == kNever) delayed_until_ = now + settings_.delay;
  return true;
}

bool ReceiveWindow::credit_to_tell() const {
  if (limit_ == limit_told_) return false;
  const std::uint64_t highest_here = highest();
  const std::uint64_t left = limit_told_ > highest_here ? limit_told_ - highest_here : 0;
  return limit_ - limit_told_ >= left;
}

Nanoseconds ReceiveWindow::acknowledgement_deadline() const {
  if (urgent_ || unacknowledged_ >= settings_.every || credit_to_tell()) {
    return std::numeric_limits<Nanoseconds>::min();
  }
  return delayed_until_;
}

}  // namespace gradcube::protocol
