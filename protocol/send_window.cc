#include "protocol/send_window.h"

#include <algorithm>
#include <bit>

namespace gradcube::protocol {
namespace {

// RFC 8985, section 6.2, step 4: deliveries after a gap that show a loss without waiting for the
// reorder window, as long as no reordering has been seen (DupThresh).
constexpr unsigned kDuplicateThreshold = 3;
// The reorder window is at most 16 round trips: RACK.reo_wnd_mult, here in quarters of min_rtt.
constexpr unsigned kMostReorderQuarters = 64;
// RACK.reo_wnd_persist: recoveries without a spurious resend after which reordering is forgotten.
constexpr std::uint8_t kRecoveriesRemembered = 16;
// RFC 6298, section 5.5, doubles the timeout at each expiry; the ceiling is reached before this.
constexpr unsigned kMostExpiries = 16;

}  // namespace

SendWindow::SendWindow(const RecoverySettings& settings, unsigned window, std::uint64_t first)
    : first_(first),
      cumulative_(first),
      next_(first),
      consumed_(first),
      awaited_(first),
      limit_(first),
      asked_(first),
      window_(std::clamp(window, 1U, kWindow)),
      recovery_end_(first),
      rtt_(settings.initial_rtt),
      settings_(settings) {}

bool SendWindow::acknowledged(std::uint64_t sequence) const {
  if (sequence < cumulative_) return true;
  return sequence < next_ && delivered_.test(offset(sequence));
}

std::uint64_t SendWindow::record_send(Nanoseconds now) {
  if (next_ == cumulative_) {
    progress_at_ = now;
    expiries_ = 0;
    tail_probed_ = false;
    probe_owed_ = false;
  }
  unasked_bytes_ = 0;
  sent_at_[slot(next_)] = now;
  return next_++;
}

std::uint64_t SendWindow::record_unasked(std::uint32_t frame_bytes, Nanoseconds now) {
  const std::uint32_t before = unasked_on_the_way();
  const std::uint64_t sequence = record_send(now);
  unasked_bytes_ = before + frame_bytes;
  limit_ = next_;
  return sequence;
}

void SendWindow::record_ask(std::uint64_t end, Nanoseconds now) {
  if (end <= asked_) return;
  // The wait for an answer begins here: the last delivery may be long ago.
  if (asked_ <= limit_ && end > limit_ && in_flight() == 0) {
    progress_at_ = now;
    expiries_ = 0;
  }
  asked_ = end;
}

std::optional<std::uint64_t> SendWindow::next_lost() const {
  if (!lost_.any()) return std::nullopt;
  return cumulative_ + lost_.lowest();
}

void SendWindow::record_resend(std::uint64_t sequence, Nanoseconds now) {
  if (sequence >= next_ || acknowledged(sequence)) return;
  lost_.clear(offset(sequence));
  resent_.set(offset(sequence));
  sent_at_[slot(sequence)] = now;
  ++counters_.resent;
}

void SendWindow::take_newest(std::uint64_t sequence, Nanoseconds now) {
  if (sent_before_newest(sequence)) return;
  newest_sent_at_ = sent_at_[slot(sequence)];
  newest_sequence_ = sequence;
  newest_rtt_ = now - newest_sent_at_;
}

void SendWindow::see_reordering() {
  if (!reordering_seen_) recoveries_to_forget_ = kRecoveriesRemembered;
  reordering_seen_ = true;
}

void SendWindow::see_spurious_resend() {
  ++counters_.spurious;
  reordering_seen_ = true;
  recoveries_to_forget_ = kRecoveriesRemembered;
  if (spurious_seen_) return;
  spurious_seen_ = true;
  reorder_quarters_ =
      static_cast<std::uint8_t>(std::min(2U * reorder_quarters_, kMostReorderQuarters));
}

void SendWindow::mark_lost(unsigned bit) {
  if (cumulative_ >= recovery_end_) recovery_end_ = next_;
  lost_.set(bit);
}

void SendWindow::end_recovery() {
  const bool spurious = spurious_seen_;
  spurious_seen_ = false;
  if (spurious || recoveries_to_forget_ == 0 || --recoveries_to_forget_ != 0) return;
  reorder_quarters_ = 1;
  reordering_seen_ = false;
}

void SendWindow::take_deliveries(Bitmap128 fresh, Nanoseconds now) {
  const std::uint64_t highest_before = highest_delivered_;
  const Bitmap128 again = fresh & resent_;
  // What is on its way over an old path says nothing of the one that the others take.
  const std::uint64_t of_path = path_begin_ > cumulative_ ? path_begin_ - cumulative_ : 0;
  const auto old = static_cast<unsigned>(std::min<std::uint64_t>(of_path, kWindow));
  const Bitmap128 once = fresh & ~resent_ & ~Bitmap128::below(old);
  highest_delivered_ = std::max(highest_delivered_, cumulative_ + fresh.end());
  for (Bitmap128 left = again; left.any();) {
    const unsigned bit = left.lowest();
    left.clear(bit);
    const std::uint64_t sequence = cumulative_ + bit;
    if (rtt_.measured() && now - sent_at_[slot(sequence)] < rtt_.minimum()) {
      // Faster than the path allows: this acknowledges the original, and the resend was spurious.
      see_spurious_resend();
    } else {
      take_newest(sequence, now);
    }
  }
  if (!once.any()) return;
  if (cumulative_ + once.lowest() < highest_before) see_reordering();
  // They were sent in their order. Of the segments that one acknowledgement covers, the last one
  // sent waited least.
  const std::uint64_t last = cumulative_ + once.end() - 1;
  take_newest(last, now);
  rtt_.add(now - sent_at_[slot(last)], now);
  unsampled_ = 0;
}

SendWindow::Report SendWindow::read_acknowledgement(std::uint32_t acknowledged,
                                                    std::uint64_t selective,
                                                    std::uint8_t held) const {
  Report report;
  report.point = expand(acknowledged);
  const auto ahead = static_cast<std::int64_t>(report.point - cumulative_);
  const auto selective_end = static_cast<unsigned>(std::bit_width(selective));
  const bool before_start = ahead < 0 && static_cast<std::uint64_t>(-ahead) > cumulative_ - first_;
  if (before_start || report.point > next_ || held > report.point - first_ ||
      (selective != 0 && report.point + 1 + selective_end > next_)) {
    report.status = AckStatus::refused;
  } else if (ahead < -static_cast<std::int64_t>(kWindow)) {
    report.status = AckStatus::stale;
  } else if (ahead >= 0) {
    const auto run = static_cast<unsigned>(ahead);
    report.delivered = Bitmap128::below(run) | Bitmap128::placed(selective, run + 1);
  } else {
    report.delivered = Bitmap128::placed(selective, 0);
    report.delivered.advance(static_cast<unsigned>(-ahead - 1));
  }
  return report;
}

void SendWindow::settle(Bitmap128 fresh, Nanoseconds now) {
  delivered_ = delivered_ | fresh;
  lost_ = lost_ & ~fresh;
  const unsigned run = delivered_.leading_run();
  const bool recovers = cumulative_ < recovery_end_;
  cumulative_ += run;
  if (recovers && cumulative_ >= recovery_end_) end_recovery();
  delivered_.advance(run);
  lost_.advance(run);
  resent_.advance(run);
  progress_at_ = now;
  expiries_ = 0;
  tail_probed_ = false;
}

unsigned SendWindow::take_delivered(std::uint64_t end, Nanoseconds now) {
  end = std::min(end, next_);
  if (end <= cumulative_) return 0;
  const Bitmap128 fresh = Bitmap128::below(offset(end)) & ~delivered_;
  settle(fresh, now);
  return fresh.count();
}

void SendWindow::await_consumed(Nanoseconds now) {
  if (awaited_ == next_) return;
  awaited_ = next_;
  // The wait begins here: the last delivery may be long ago.
  if (in_flight() == 0 && consumed_ < awaited_) progress_at_ = now;
}

AckResult SendWindow::take_acknowledgement(std::uint32_t acknowledged, std::uint64_t selective,
                                           std::uint16_t credit, std::uint8_t held,
                                           Nanoseconds now) {
  const Report report = read_acknowledgement(acknowledged, selective, held);
  AckResult result;
  result.status = report.status;
  if (report.status == AckStatus::refused) ++counters_.refused;
  if (report.status != AckStatus::taken) return result;
  const Bitmap128 fresh = report.delivered & ~delivered_;
  if (fresh.any()) {
    take_deliveries(fresh, now);
    settle(fresh, now);
    result.delivered = static_cast<std::uint16_t>(fresh.count());
  }
  take_consumed(report.point, held, now);
  visible_end_ = std::max(visible_end_, report.point + kVisible);
  result.credit_raised = take_credit(report.point, credit);
  result.lost = static_cast<std::uint16_t>(detect_losses(now));
  return result;
}

Nanoseconds SendWindow::reorder_window() const {
  if (!reordering_seen_ && delivered_.count() >= kDuplicateThreshold) return 0;
  return std::min(rtt_.minimum() * reorder_quarters_ / 4, rtt_.smoothed());
}

// RFC 8985, section 6.2, step 5 (RACK_detect_loss).
unsigned SendWindow::detect_losses(Nanoseconds now) {
  reorder_deadline_ = kNever;
  if (highest_delivered_ == 0 || in_flight() == 0 || !may_find_losses()) return 0;
  const auto visible =
      static_cast<unsigned>(visible_end_ > cumulative_ ? visible_end_ - cumulative_ : 0);
  const Nanoseconds window = reorder_window();
  unsigned found = 0;
  for (Bitmap128 left = missing() & ~lost_ & Bitmap128::below(visible); left.any();) {
    const unsigned bit = left.lowest();
    left.clear(bit);
    const std::uint64_t sequence = cumulative_ + bit;
    if (!sent_before_newest(sequence) || on_old_path(sequence)) continue;
    Nanoseconds due = newest_rtt_ + window;
    if (resent_.test(bit)) due = std::max(due, rtt_.smoothed());
    due += sent_at_[slot(sequence)];
    if (now >= due) {
      mark_lost(bit);
      ++found;
    } else {
      reorder_deadline_ = std::min(reorder_deadline_, due);
    }
  }
  return found;
}

// RFC 8985, section 7.2: the tail loss probe's timeout (PTO). One answer that comes very late must
// not keep the next probe waiting for as long.
Nanoseconds SendWindow::probe_timeout() const {
  const Nanoseconds delay = settings_.acknowledge_delay;
  const Nanoseconds first = std::max(settings_.probe_floor + delay,
                                     std::min(2 * rtt_.smoothed() + delay, settings_.rto_ceiling));
  return std::max(first, std::min(first << unsampled_, settings_.rto_ceiling));
}

// RFC 6298, section 2, with the receiver's acknowledge delay added.
Nanoseconds SendWindow::retransmission_timeout() const {
  const Nanoseconds first = std::max(
      settings_.rto_floor, rtt_.smoothed() + 4 * rtt_.deviation() + settings_.acknowledge_delay);
  // Bounded before the shift, too: it must not overflow.
  const Nanoseconds bounded = std::min(first, settings_.rto_ceiling) << expiries_;
  return std::max(std::min(bounded, settings_.rto_ceiling), probe_timeout());
}

Nanoseconds SendWindow::tail_deadline() const {
  // If anything is in flight, cumulative_ is the first that is missing.
  if (in_flight() == 0 || lost_.test(0)) return kNever;
  const Nanoseconds since = std::max(progress_at_, sent_at_[slot(cumulative_)]);
  return since + (tail_probed_ ? retransmission_timeout() : probe_timeout());
}

Nanoseconds SendWindow::news_deadline() const {
  const bool waits = asked_ > limit_ || consumed_ < awaited_;
  if (in_flight() != 0 || !waits || probe_owed_) return kNever;
  return progress_at_ + retransmission_timeout();
}

Nanoseconds SendWindow::deadline() const {
  return std::min({reorder_deadline_, tail_deadline(), news_deadline()});
}

void SendWindow::change_path(bool old_one_failed, Nanoseconds now) {
  if (old_one_failed) {
    if (missing().any() && cumulative_ >= recovery_end_) recovery_end_ = next_;
    lost_ = lost_ | missing();
    reorder_deadline_ = kNever;
  }
  path_begin_ = next_;
  rtt_ = RttEstimator(settings_.initial_rtt);
  progress_at_ = now;
  expiries_ = 0;
  unsampled_ = 0;
  tail_probed_ = false;
}

void SendWindow::on_timer(Nanoseconds now) {
  if (reorder_deadline_ <= now) detect_losses(now);
  if (tail_deadline() <= now) {
    mark_lost(missing().lowest());
    progress_at_ = now;
    if (unsampled_ < kMostExpiries) ++unsampled_;
    if (!tail_probed_) {
      tail_probed_ = true;
      ++counters_.probes;
    } else {
      ++counters_.timeouts;
      if (expiries_ < kMostExpiries) ++expiries_;
    }
  }
  if (news_deadline() <= now) {
    probe_owed_ = true;
    progress_at_ = now;
    ++counters_.credit_probes;
    if (expiries_ < kMostExpiries) ++expiries_;
  }
}

}  // namespace gradcube::protocol
