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

Arrival ReceiveWindow::arrive(std::uint32_t wire_sequence, std::uint64_t& sequence,
                              Nanoseconds now) {
  const auto ahead =
      static_cast<std::int64_t>(static_cast<std::int32_t>(wire_sequence - acknowledged()));
  sequence = expand(wire_sequence);
  if (ahead < 0) {
    urgent_ = true;
    return static_cast<std::uint64_t>(-ahead) <= cumulative_ ? Arrival::duplicate
                                                             : Arrival::outside;
  }
  if (sequence >= most()) {
    urgent_ = true;
    return Arrival::outside;
  }
  const auto bit = static_cast<unsigned>(ahead);
  if (beyond_.test(bit)) {
    urgent_ = true;
    return Arrival::duplicate;
  }
  // Out of order, or the end of a gap: in both cases a sequence before or after this one is
  // missing.
  if (bit != 0 || beyond_.any()) urgent_ = true;
  if (sequence >= limit_) {
    // Unasked, so the sender knows that it may.
    limit_ = sequence + 1;
    limit_told_ = limit_;
  }
  beyond_.set(bit);
  const unsigned run = beyond_.leading_run();
  beyond_.advance(run);
  cumulative_ += run;
  if (unacknowledged_ == 0) delayed_until_ = now + settings_.delay;
  if (unacknowledged_ < settings_.every) ++unacknowledged_;
  return Arrival::fresh;
}

bool ReceiveWindow::received(std::uint64_t sequence) const {
  if (sequence < cumulative_) return true;
  const std::uint64_t bit = sequence - cumulative_;
  return bit < kWindow && beyond_.test(static_cast<unsigned>(bit));
}

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

void ReceiveWindow::acknowledged_now() {
  limit_told_ = limit_;
  delayed_until_ = kNever;
  unacknowledged_ = 0;
  urgent_ = false;
}

}  // namespace gradcube::protocol
