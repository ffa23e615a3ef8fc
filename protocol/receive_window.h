// The receiving half of one flow: which sequences are here, how many more the sender may send, and
// when to say so.
//
// A flow is (job, thread, stage, neighbour) and has two directions, each with its own sequences
// from 0. This class keeps one direction at its receiver; SendWindow keeps the same direction at
// its sender. Delivery is exactly once and not ordered: arrive() says `fresh` once for every
// sequence, whatever the order. Sequences are 64 bits wide here; the wire carries the low 32,
// expanded around the cumulative point.
//
// Credit: the sender may send sequences below limit(), an absolute number that only rises.
// CreditPool raises it.
//
// Acknowledgements: an acknowledgement is owed
//   - at once when something arrived out of order, filled a gap, came twice or came from beyond
//     the credit: the sender is to learn of a loss, of a segment or of an acknowledgement, without
//     waiting;
//   - after AcknowledgementSettings::every segments in order;
//   - AcknowledgementSettings::delay after the first segment not yet acknowledged;
//   - when the limit rose by as much as the sender still had left of the one it was told: it never
//     stalls for want of news, and news costs at most one packet each time its credit doubles.
// Whatever is sent in the other direction carries the fields: call acknowledged_now() after it.
//
// Owned and used by one engine; no allocation, no clock.
#ifndef GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_
#define GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_

#include <cstdint>

#include "protocol/bitmap.h"
#include "protocol/time.h"

namespace gradcube::protocol {

enum class Arrival : std::uint8_t {
  fresh,      // the first time: the segment is to be used
  duplicate,  // was here before: count and drop
  outside,    // beyond the limit, or before the flow began: count and drop
};

// When segments that arrive in order are acknowledged by a frame of its own. On a slow link the
// delay should leave time for a few frames, so that a segment in the other direction carries the
// news; the sender's RecoverySettings must know of it.
struct AcknowledgementSettings {
  std::uint16_t every = 4;
  Nanoseconds delay = kAcknowledgeDelay;
};

class ReceiveWindow {
 public:
  // The most sequences that can be granted beyond the cumulative point.
  static constexpr unsigned kWindow = 128;

  // What a sender may send before it has heard anything; both halves are made with the same value,
  // in 1 .. kWindow.
  // `first` is the first sequence of the flow, the same at both ends too.
  explicit ReceiveWindow(unsigned initial_limit = 1, std::uint64_t first = 0,
                         const AcknowledgementSettings& settings = {});

  // The 64-bit sequence nearest to the cumulative point with these low bits.
  std::uint64_t expand(std::uint32_t wire) const {
    return cumulative_ + static_cast<std::uint64_t>(static_cast<std::int64_t>(
                             static_cast<std::int32_t>(wire - acknowledged())));
  }

  // Takes note of a segment. `sequence` gets its 64-bit number (no meaning if outside).
  Arrival arrive(std::uint32_t wire_sequence, std::uint64_t& sequence, Nanoseconds now);

  // Takes note of a probe: the sender is out of credit, or believes so, and wants an answer.
  void on_probe() { urgent_ = true; }

  bool received(std::uint64_t sequence) const;

  // All sequences below this one are here.
  std::uint64_t cumulative() const { return cumulative_; }
  // How many sequences are here.
  std::uint64_t arrivals() const { return cumulative_ + beyond_.count(); }
  // One more than the highest sequence here.
  std::uint64_t highest() const { return cumulative_ + beyond_.end(); }

  // The three fields of the transport header.
  std::uint32_t acknowledged() const { return static_cast<std::uint32_t>(cumulative_); }
  std::uint64_t selective() const { return beyond_.extract(1); }
  std::uint16_t credit() const { return static_cast<std::uint16_t>(limit_ - cumulative_); }

  std::uint64_t limit() const { return limit_; }
  // Grants all sequences below `limit`. Never lowers it, and never raises it beyond cumulative() +
  // kWindow. True if it rose.
  bool raise_limit(std::uint64_t limit);

  bool acknowledgement_owed(Nanoseconds now) const {
    return urgent_ || unacknowledged_ >= settings_.every || now >= delayed_until_ ||
           credit_to_tell();
  }
  // When one will be owed if nothing else happens; kNever if nothing waits. In the past if it is
  // owed already.
  Nanoseconds acknowledgement_deadline() const;
  // The three fields have just been sent.
  void acknowledged_now();

 private:
  bool credit_to_tell() const;

  std::uint64_t cumulative_ = 0;
  Bitmap128 beyond_;  // bit i: cumulative_ + i is here; bit 0 is always clear
  std::uint64_t limit_;
  std::uint64_t limit_told_;
  Nanoseconds delayed_until_ = kNever;
  AcknowledgementSettings settings_;
  std::uint16_t unacknowledged_ = 0;
  bool urgent_ = false;
};

}  // namespace gradcube::protocol

#endif  // GRADCUBE_PROTOCOL_RECEIVE_WINDOW_H_
