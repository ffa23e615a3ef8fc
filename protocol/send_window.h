// The sending half of one flow: what is in flight, what was lost, and when to retransmit.
//
// It keeps no payload. The owner builds a lost segment again from the gradient buffer and sends it
// with the same sequence. The owner's loop, per flow:
//
//   frame arrives:  on_acknowledgement(...)            deadline() passed:  on_timer(now)
//   to send:        while (auto lost = next_lost())    -> resend it, record_resend(*lost, now)
//                   while (may_send() && ready)        -> send next(), record_send(now)
//                   if (probe_owed())                  -> send a probe, record_probe()
// After any of these the owner sets its timer to deadline() again. It processes arrived frames
// before it calls on_timer(): after a pause, the acknowledgements that the timers are waiting for
// are in the receive ring.
//
// Loss is found by time, as in RACK (RFC 8985). A sequence is lost when one that was sent after it
// has been delivered, and when the round trip plus a reorder window has passed since it was sent.
// The reorder window is min_rtt / 4; the minimum is that of the last 5 to 10 s (rtt.h). While no
// reordering has been seen, three deliveries after a gap make it a loss at once. Timers find losses
// that no later delivery reveals: the first missing segment is retransmitted after the probe
// timeout without progress, and again after the retransmission timeout (RTO), which doubles. One
// segment is enough: its acknowledgement shows by time what else is missing. No segment is
// retransmitted twice within a smoothed RTT.
//
// A resend is spurious when its answer comes faster than min_rtt: the original had arrived. Then
// the reorder window doubles, up to the smoothed RTT, but only once per recovery. A recovery lasts
// from the first segment found lost until all that had been sent by then is acknowledged. After 16
// recoveries without a spurious resend the reorder window is min_rtt / 4 again, and reordering
// counts as not seen. RFC 8985 (section 6.2, step 4) differs in two ways:
//   - it adds a quarter of min_rtt instead of doubling. Here spurious resends are to end after a
//     few recoveries;
//   - it never forgets reordering. A flow here lives as long as its job, and one late segment would
//     slow down its recoveries for hours. On a path that does reorder, forgetting costs spurious
//     resends in one recovery of 17.
//
//   probe timeout  max(probe_floor + acknowledge_delay,
//                      min(2 srtt + acknowledge_delay, rto_ceiling))
//                  * 2^(expiries since the round trip was measured), rto_ceiling at most
//   RTO            min(max(rto_floor, srtt + 4 rttvar + acknowledge_delay) * 2^expiries,
//                      rto_ceiling), at least the probe timeout
//
// A segment that was sent again measures no round trip. On a path that is slower than the timers
// all would be sent again, so the timeouts stay long until one is measured (RFC 6298, section 5).
//
// News from elsewhere. What the owner receives on another flow may show that a prefix of this one
// has arrived. take_delivered() records it, and no acknowledgement has to be awaited.
//
// Consumption. An acknowledged segment has arrived, but its receiver may not have read it yet.
// Where both share memory, an owner that wants its memory back waits for consumed() and says so
// with await_consumed().
//
// A flow with nothing in flight would stall if the news of a credit that it has asked for, or of
// the consumption that its owner awaits, were lost. Such a flow sends a probe after each RTO, which
// doubles.
//
// Every field of an acknowledgement is hostile: one for sequences that were never sent, or that
// holds more of them than it acknowledges, is refused and counted. Owned and used by one engine; no
// allocation, no clock. All times are the owner's `now` and never decrease.
#ifndef GRADCUBE_PROTOCOL_SEND_WINDOW_H_
#define GRADCUBE_PROTOCOL_SEND_WINDOW_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>

#include "protocol/bitmap.h"
#include "protocol/receive_window.h"
#include "protocol/rtt.h"
#include "protocol/time.h"

namespace gradcube::protocol {

// The defaults are for engines that each have a core. If pollers share cores, the floors must be at
// least a time slice of the scheduler.
struct RecoverySettings {
  Nanoseconds probe_floor = 200 * kMicrosecond;
  Nanoseconds rto_floor = 500 * kMicrosecond;
  Nanoseconds rto_ceiling = 64 * kMillisecond;
  Nanoseconds acknowledge_delay = kAcknowledgeDelay;  // of the receivers: AcknowledgementSettings
  Nanoseconds initial_rtt = 100 * kMicrosecond;       // the RTT until one is measured
};

enum class AckStatus : std::uint8_t {
  taken,
  stale,    // more than a window older than the newest one; ignored
  refused,  // acknowledges what was never sent, or holds what was not acknowledged; ignored
};

struct AckResult {
  AckStatus status = AckStatus::taken;
  std::uint16_t delivered = 0;  // sequences reported as delivered for the first time
  std::uint16_t lost = 0;       // sequences newly found lost
  bool credit_raised = false;
};

struct SendCounters {
  std::uint64_t resent = 0;         // record_resend() calls
  std::uint64_t probes = 0;         // tail probes: a segment sent again after no progress
  std::uint64_t timeouts = 0;       // RTO expiries
  std::uint64_t credit_probes = 0;  // probes for news: of credit, or of what was consumed
  std::uint64_t spurious = 0;       // resends whose original had been delivered
  std::uint64_t refused = 0;        // AckStatus::refused
};

class SendWindow {
 public:
  static constexpr unsigned kWindow = 128;
  // How many bytes of frames may be on their way unasked: a segment of 512 bytes, or a few shorter
  // ones. A switch's queue needs room for as much from each sender beside what is granted.
  static constexpr std::uint32_t kUnaskedBytes = 640;

  // `window` and `first`: as for the ReceiveWindow at the other end.
  explicit SendWindow(const RecoverySettings& settings, unsigned window = kWindow,
                      std::uint64_t first = 0);

  // Whether the next sequence may be sent: within the credit and within kWindow of the cumulative
  // point.
  bool may_send() const { return next_ < limit_ && next_ - cumulative_ < kWindow; }
  // Whether the next sequence may be sent although it is not granted, in a frame of so many bytes:
  // nothing is on its way but what was sent unasked, all of it within kUnaskedBytes, and the
  // receiver has room.
  bool may_send_unasked(std::uint32_t frame_bytes) const {
    return next_ >= limit_ && next_ - consumed_ < window_ &&
           (in_flight() == 0 || unasked_bytes_ != 0) &&
           unasked_on_the_way() + frame_bytes <= kUnaskedBytes;
  }
  // Bytes of frames.
  std::uint32_t unasked_on_the_way() const { return in_flight() == 0 ? 0 : unasked_bytes_; }
  // Whether a segment that is ready waits for a credit that the receiver has not been asked for.
  bool must_ask() const { return next_ >= limit_ && asked_ <= next_; }
  // A frame has just told the receiver that all sequences below `end` are ready to be sent.
  void record_ask(std::uint64_t end, Nanoseconds now);
  std::uint64_t next() const { return next_; }
  // What a frame acknowledges with these low bits: the nearest to cumulative().
  std::uint64_t expand(std::uint32_t wire) const {
    return cumulative_ +
           static_cast<std::uint64_t>(static_cast<std::int64_t>(
               static_cast<std::int32_t>(wire - static_cast<std::uint32_t>(cumulative_))));
  }
  // All sequences below this one have been acknowledged.
  std::uint64_t cumulative() const { return cumulative_; }
  // The receiver has consumed all sequences below this one: it does not read them again. Never
  // falls; at most cumulative().
  std::uint64_t consumed() const { return consumed_; }
  std::uint64_t limit() const { return limit_; }
  unsigned in_flight() const { return static_cast<unsigned>(next_ - cumulative_); }
  bool acknowledged(std::uint64_t sequence) const;

  // The next sequence has been sent; returns it. Only where may_send().
  std::uint64_t record_send(Nanoseconds now);
  // The same where may_send_unasked().
  std::uint64_t record_unasked(std::uint32_t frame_bytes, Nanoseconds now);

  // The lowest sequence that is lost and not yet resent. A resend needs no further credit.
  std::optional<std::uint64_t> next_lost() const;
  // `sequence` has been sent again. One that is acknowledged or was never sent is ignored.
  void record_resend(std::uint64_t sequence, Nanoseconds now);

  // Whether the owner is to send a probe (FrameTemplate::write_probe).
  bool probe_owed() const { return probe_owed_; }
  void record_probe() { probe_owed_ = false; }

  // The owner waits until all that it has sent so far is consumed. The receiver tells this
  // unasked; should that frame be lost, probes ask for it. A call for a prefix that is awaited
  // already changes nothing, so the owner may call this again as long as it waits.
  void await_consumed(Nanoseconds now);

  // Takes the fields of a transport header.
  AckResult on_acknowledgement(std::uint32_t acknowledged, std::uint64_t selective,
                               std::uint16_t credit, std::uint8_t held, Nanoseconds now) {
    // Mostly it travels with a segment, and says of arrivals what the last one said.
    const bool repeats = selective == 0 &&
                         acknowledged == static_cast<std::uint32_t>(cumulative_) &&
                         held <= cumulative_ - first_;
    if (!repeats || may_find_losses()) {
      return take_acknowledgement(acknowledged, selective, credit, held, now);
    }
    AckResult result;
    reorder_deadline_ = kNever;
    visible_end_ = std::max(visible_end_, cumulative_ + kVisible);
    take_consumed(cumulative_, held, now);
    result.credit_raised = take_credit(cumulative_, credit);
    return result;
  }

  // All sequences below `end` that were sent have arrived, as the owner knows from elsewhere.
  // Returns how many of them no acknowledgement had reported. Gives no sample of the round trip.
  unsigned take_delivered(std::uint64_t end, Nanoseconds now);

  // Segments take another path from now on, whose round trip is not known. Where the old one has
  // failed, all that is in flight is lost and sent again. Else it still arrives, and may be
  // overtaken: its acknowledgements measure nothing, and only a timer finds that it was lost.
  void change_path(bool old_one_failed, Nanoseconds now);

  // When on_timer() is next needed; kNever if nothing waits.
  Nanoseconds deadline() const;
  void on_timer(Nanoseconds now);

  const RttEstimator& rtt() const { return rtt_; }
  const SendCounters& counters() const { return counters_; }

 private:
  // What one acknowledgement covers: the cumulative point and the 64 sequences of the bitmap.
  static constexpr unsigned kVisible = 65;

  static constexpr unsigned slot(std::uint64_t sequence) {
    return static_cast<unsigned>(sequence % kWindow);
  }
  unsigned offset(std::uint64_t sequence) const {
    return static_cast<unsigned>(sequence - cumulative_);
  }

  // What an acknowledgement says: below `point` all is delivered; bit i of `delivered` is
  // cumulative_ + i.
  struct Report {
    AckStatus status = AckStatus::taken;
    std::uint64_t point = 0;
    Bitmap128 delivered;
  };
  Report read_acknowledgement(std::uint32_t acknowledged, std::uint64_t selective,
                              std::uint8_t held) const;
  AckResult take_acknowledgement(std::uint32_t acknowledged, std::uint64_t selective,
                                 std::uint16_t credit, std::uint8_t held, Nanoseconds now);
  void settle(Bitmap128 fresh, Nanoseconds now);
  void take_consumed(std::uint64_t point, std::uint8_t held, Nanoseconds now) {
    if (held == ReceiveWindow::kManyHeld || point - held <= consumed_) return;
    consumed_ = point - held;
    if (in_flight() != 0) return;
    progress_at_ = now;
    expiries_ = 0;
    probe_owed_ = false;
  }
  // Whether the credit grew.
  bool take_credit(std::uint64_t point, std::uint16_t credit) {
    const std::uint64_t limit = point + std::min<unsigned>(credit, kWindow);
    if (limit <= limit_) return false;
    limit_ = limit;
    probe_owed_ = false;
    if (in_flight() == 0) expiries_ = 0;
    return true;
  }
  // Nothing can be lost without a gap, a resend, or a first missing sequence that is older than the
  // newest delivery.
  bool may_find_losses() const {
    return delivered_.any() || resent_.any() ||
           (in_flight() != 0 && sent_before_newest(cumulative_));
  }

  // Sequences sent and not known to be delivered.
  Bitmap128 missing() const { return Bitmap128::below(in_flight()) & ~delivered_; }
  bool sent_before_newest(std::uint64_t sequence) const {
    const Nanoseconds sent_at = sent_at_[slot(sequence)];
    return sent_at < newest_sent_at_ || (sent_at == newest_sent_at_ && sequence < newest_sequence_);
  }
  // Whether it is on its way over a path that the flow does not take any more.
  bool on_old_path(std::uint64_t sequence) const {
    return sequence < path_begin_ && !resent_.test(offset(sequence));
  }
  void take_deliveries(Bitmap128 fresh, Nanoseconds now);
  void take_newest(std::uint64_t sequence, Nanoseconds now);
  void see_reordering();
  void see_spurious_resend();
  void mark_lost(unsigned bit);
  void end_recovery();
  unsigned detect_losses(Nanoseconds now);
  Nanoseconds reorder_window() const;
  Nanoseconds probe_timeout() const;
  Nanoseconds retransmission_timeout() const;
  // When the first missing sequence is retransmitted if there is no progress; kNever if none is
  // missing or it is already waiting to be resent.
  Nanoseconds tail_deadline() const;
  // When a flow with nothing in flight asks for what it waits for; kNever if for nothing.
  Nanoseconds news_deadline() const;

  std::uint64_t first_ = 0;
  std::uint64_t cumulative_ = 0;
  std::uint64_t next_ = 0;
  std::uint64_t consumed_ = 0;
  std::uint64_t awaited_ = 0;  // the owner waits for consumed_ to reach this
  std::uint64_t limit_;
  std::uint64_t asked_;  // the receiver has been asked for credit up to this
  unsigned window_;
  std::uint32_t unasked_bytes_ = 0;  // of what is in flight, if nothing else is; else 0
  // Bit i: cumulative_ + i.
  Bitmap128 delivered_;
  Bitmap128 lost_;    // to be resent
  Bitmap128 resent_;  // sent more than once
  Nanoseconds reorder_deadline_ = kNever;
  Nanoseconds progress_at_ = 0;  // of the last delivery, consumption or timer
  // The most recently sent transmission that has been delivered.
  Nanoseconds newest_sent_at_ = 0;
  std::uint64_t newest_sequence_ = 0;
  Nanoseconds newest_rtt_ = 0;
  std::uint64_t highest_delivered_ = 0;  // one more than the highest sequence delivered
  std::uint64_t visible_end_ = 0;      // acknowledgements have covered all sequences below this one
  std::uint64_t path_begin_ = 0;       // the first sequence that took the path
  std::uint64_t recovery_end_ = 0;     // a recovery lasts until cumulative_ reaches this
  std::uint8_t reorder_quarters_ = 1;  // the reorder window in quarters of min_rtt
  // So many recoveries without a spurious resend until reordering is forgotten.
  std::uint8_t recoveries_to_forget_ = 0;
  std::uint8_t expiries_ = 0;
  std::uint8_t unsampled_ = 0;  // expiries of timers since the round trip was measured last
  bool reordering_seen_ = false;
  bool spurious_seen_ = false;  // since the last recovery has ended
  bool tail_probed_ = false;
  bool probe_owed_ = false;
  RttEstimator rtt_;
  RecoverySettings settings_;
  SendCounters counters_;
  std::array<Nanoseconds, kWindow> sent_at_{};
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_SEND_WINDOW_H_
