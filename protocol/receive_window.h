// The receiving half of one flow: which sequences have arrived, how many more the sender may send,
// and when to acknowledge.
//
// A flow (docs/protocol.md, section 3) has two directions; each numbers its segments from 0. This
// class keeps one direction at its receiver; SendWindow keeps the same direction at its sender.
// Delivery is exactly once and not ordered: look() returns `fresh` until a sequence is recorded, in
// any order. Sequences are 64 bits here. The wire carries the low 32, which are expanded to the
// value nearest the cumulative point.
//
// Credit. The sender may send sequences below limit(), an absolute number that only rises.
// CreditPool raises it. A sender that has nothing on its way may also send a few bytes that are not
// granted (SendWindow::may_send_unasked): a small exchange need not wait for a grant. So record()
// takes what has room, and the limit rises with it.
//
// Acknowledgements. An acknowledgement is due
//   - at once when a segment arrives out of order, fills a gap, is a duplicate or is beyond the
//     window: so the sender learns of a loss, of a segment or of an acknowledgement, without delay;
//   - after AcknowledgementSettings::every segments in order;
//   - AcknowledgementSettings::delay after the first unacknowledged segment;
//   - at once when the owner says that the sender waits for it: acknowledge_at_once();
//   - when the limit has risen by as much as the sender had left of the limit that it knew: so the
//     sender does not stall, and this costs at most one frame each time its credit doubles;
//   - AcknowledgementSettings::delay after more was consumed, if nothing is missing and no frame
//     has told the sender so (see below).
// Every frame in the other direction carries the fields: call acknowledged_now() after sending one.
//
// Consumption. Acknowledged means that a segment is here. Consumed means that its receiver will not
// read it again. Where sender and receiver share memory, a sender that wants its memory back waits
// for the second. The owner says with set_consumed() how far it has read, and held() tells the
// sender. The delay lets a segment in the other direction carry the news, so a stream with traffic
// needs no frame for it; where nothing is sent, the news costs at most one frame per delay.
//
// Owned and used by one engine; no allocation, no clock.
#ifndef GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_
#define GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_

#include <algorithm>
#include <cstdint>

#include "protocol/bitmap.h"
#include "protocol/time.h"

namespace gradcube::protocol {

enum class Arrival : std::uint8_t {
  fresh,      // the first arrival: use the segment
  duplicate,  // has arrived before: count and drop
  outside,    // beyond what has room, or before the flow began: count and drop
};

// When segments that arrive in order get an acknowledgement frame. On a slow link the delay should
// last a few frames, so that a segment in the other direction can carry the acknowledgement. The
// sender's RecoverySettings must contain the same delay.
struct AcknowledgementSettings {
  std::uint16_t every = 4;
  Nanoseconds delay = kAcknowledgeDelay;
};

class ReceiveWindow {
 public:
  // The most sequences that can be granted beyond the cumulative point.
  static constexpr unsigned kWindow = 128;
  // held() where it is this or more. With a CreditPool it is never more than kWindow.
  static constexpr std::uint8_t kManyHeld = 255;

  // `window` (1 .. kWindow): how many sequences beyond the consumed ones may be here. `first`: the
  // first sequence of the flow. Both must be the same at both ends.
  explicit ReceiveWindow(unsigned window = kWindow, std::uint64_t first = 0,
                         const AcknowledgementSettings& settings = {});

  // The 64-bit sequence nearest to the cumulative point with these low bits.
  std::uint64_t expand(std::uint32_t wire) const {
    return cumulative_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                             static_cast<std::int32_t>(wire - acknowledged())));
  }

  // What a segment with this number would be; its owner may look at what it carries, and then
  // record()s it if it is fresh, or calls acknowledge_at_once().
  Arrival look(std::uint64_t sequence) const {
    if (sequence < cumulative_) return Arrival::duplicate;
    if (sequence >= most()) return Arrival::outside;  // as what lies before the flow's begin
    return beyond_.test(static_cast<unsigned>(sequence - cumulative_)) ? Arrival::duplicate
                                                                       : Arrival::fresh;
  }
  // A fresh one is here.
  void record(std::uint64_t sequence, Nanoseconds now);

  // Records a probe: the sender knows of no credit and asks for an acknowledgement.
  void on_probe() { urgent_ = true; }

  // The sender waits for the acknowledgement of what is here: no frame in the other direction will
  // carry it soon.
  void acknowledge_at_once() { urgent_ = true; }

  bool received(std::uint64_t sequence) const {
    if (sequence < cumulative_) return true;
    const std::uint64_t bit = sequence - cumulative_;
    return bit < kWindow && beyond_.test(static_cast<unsigned>(bit));
  }

  // All sequences below this one have arrived.
  std::uint64_t cumulative() const { return cumulative_; }
  // How many sequences have arrived.
  std::uint64_t arrivals() const { return cumulative_ + beyond_.count(); }
  // One more than the highest sequence that has arrived.
  std::uint64_t highest() const { return cumulative_ + beyond_.end(); }

  // The fields of the transport header.
  std::uint32_t acknowledged() const { return static_cast<std::uint32_t>(cumulative_); }
  std::uint64_t selective() const { return beyond_.extract(1); }
  std::uint8_t credit() const { return static_cast<std::uint8_t>(limit_ - cumulative_); }
  std::uint8_t held() const {
    return static_cast<std::uint8_t>(std::min(cumulative_ - consumed_, std::uint64_t{kManyHeld}));
  }

  // All sequences below this one have been used and are not read again.
  std::uint64_t consumed() const { return consumed_; }
  // Raises consumed() to `prefix`. Never lowers it, and never raises it beyond cumulative(). True
  // if it rose. A member of a CreditPool is told through the pool.
  bool set_consumed(std::uint64_t prefix, Nanoseconds now);

  std::uint64_t limit() const { return limit_; }
  // The limit never rises beyond this: what has arrived and is not consumed holds buffers.
  std::uint64_t most() const { return consumed_ + window_; }
  // Grants all sequences below `limit`. Never lowers it, and never raises it beyond most(). True if
  // it rose.
  bool raise_limit(std::uint64_t limit);

  bool acknowledgement_owed(Nanoseconds now) const {
    return urgent_ || unacknowledged_ >= settings_.every || now >= delayed_until_ ||
           credit_to_tell();
  }
  // When an acknowledgement becomes due if nothing else happens; kNever if nothing waits. In the
  // past if one is due already.
  Nanoseconds acknowledgement_deadline() const;
  // The fields have just been sent.
  void acknowledged_now() {
    limit_told_ = limit_;
    delayed_until_ = kNever;
    unacknowledged_ = 0;
    urgent_ = false;
  }

 private:
  bool credit_to_tell() const;

  std::uint64_t cumulative_ = 0;
  std::uint64_t consumed_ = 0;
  Bitmap128 beyond_;  // bit i: cumulative_ + i has arrived; bit 0 is always clear
  std::uint64_t limit_;
  std::uint64_t limit_told_;
  unsigned window_;
  // When the first unacknowledged segment, or else the news of consumption, becomes due.
  Nanoseconds delayed_until_ = kNever;
  AcknowledgementSettings settings_;
  std::uint16_t unacknowledged_ = 0;
  bool urgent_ = false;
};

inline void ReceiveWindow::record(std::uint64_t sequence, Nanoseconds now) {
  if (sequence >= limit_) {
    // Unasked, so the sender knows that it may.
    limit_ = sequence + 1;
    limit_told_ = limit_;
  }
  if (sequence == cumulative_ && !beyond_.any()) {
    ++cumulative_;
  } else {
    // Out of order, or the end of a gap: in both cases a sequence before or after this one is
    // missing.
    urgent_ = true;
    beyond_.set(static_cast<unsigned>(sequence - cumulative_));
    const unsigned run = beyond_.leading_run();
    beyond_.advance(run);
    cumulative_ += run;
  }
  if (unacknowledged_ == 0) delayed_until_ = now + settings_.delay;
  if (unacknowledged_ < settings_.every) ++unacknowledged_;
}

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_
