// The part of a plan that one thread of one rank executes: its peers in each step, and the streams
// that it exchanges with them. How a collective's streams are cut, and which segment needs which,
// is in stream_positions.h. The executor (dataplane/engine/plan_executor.h) asks these functions
// for every packet, and the verifier (verify.h) walks the same ones.
//
// Streams. At aggregation step w a rank receives, from each peer of the step, the same ordered
// stream of segments: its RECEIVE STREAM of that step. What it sends to the peer whose digit is its
// own plus r is that peer's receive stream: the SEND STREAM (w, r). The broadcast stage runs the
// same streams backwards, and names them alike: a rank sends its receive stream of step w, which
// now holds results, to every peer of that step, and gets the send stream (w, r) back from the peer
// at offset r.
//
// A ring (step_pattern.h) carries the same streams to others. In its rounds a rank sends to the
// peer at offset 1 alone and receives from the one at offset radix-1 alone; each round carries a
// stream as long as any of the step. In round t of the aggregation stage a rank sends what is named
// (w, radix-1-t), and receives what is named (w, radix-2-t), which it adds itself to; in the last
// round that is its own receive stream. In round t of the broadcast stage it sends its receive
// stream if t is 0 and what is named (w, radix-t) else, and receives (w, radix-1-t).
//
// To a root all send, and it sends to all: it has a receive stream, and the others have the one
// send stream that is the root's receive stream. From there on the others have no streams, and
// bystanders have none from the beginning.
//
// Where steps double, all streams of a step carry the same, and there is no broadcast stage.
//
// Pieces. The receive stream of step w carries the pieces whose owners agree with the receiver in
// the digits of steps 0..w. Their order depends on the receiver alone: piece number `index`, read
// as a mixed radix number of r(w+1), ..., r(k-1) (the first most significant), has the owner digit
// (receiver's digit + r(u)) mod radix in step u. So all senders to one receiver send in the same
// order, which completes its pieces one after the other; the pieces that it keeps at its next step
// (r = 0) come first, then those that it passes on to its next peer; and in each later step no two
// senders begin with the same receiver.
//
// Short pieces travel together, and long ones are cut (stream_positions.h).
//
// These streams are the sets that CalcGset and CheckDigits define in the BML paper's Algorithm 1,
// in an order. Immutable after construction; any thread may read it. Nothing allocates. The
// functions trust their arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_THREAD_SCHEDULE_H_
#define GRADCUBE_CONTROL_PLAN_THREAD_SCHEDULE_H_

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>

#include "control/plan/base/plan.h"

namespace gradcube::control {

// Offsets of peers: first, first + 1, ... to before end.
struct Offsets {
  unsigned first = 1;
  unsigned end = 1;

  unsigned count() const { return end - first; }
  bool contains(unsigned r) const { return r >= first && r < end; }
};

struct ScheduleStep {
  unsigned radix = 1;
  std::uint32_t stride = 1;
  unsigned digit = 0;         // this rank's digit in the step
  unsigned parts = 1;         // that the step divides what is worked on into
  std::uint32_t pieces = 1;   // in each of the step's streams
  unsigned rounds = 1;        // radix - 1 in a ring, else 1
  unsigned participants = 1;  // digits that have a part in the step: the first
  bool sums = false;          // whether this rank has a receive stream
  Offsets send_streams{};     // those that it has
  unsigned peers = 0;         // that it sends to or receives from
  // Those that it receives from, and those that it sends to.
  std::array<Offsets, kStages> sources{};
  std::array<Offsets, kStages> targets{};
  // In round 0 of the aggregation stage the peer at offset r gets the send stream (w, max(r,
  // first_sent)).
  unsigned first_sent = 1;                            // radix - 1 in a ring
  std::shared_ptr<const DigitOrder> order = nullptr;  // of the step's digits, if it has one

  bool is_ring() const { return rounds > 1; }
  const Offsets& sources_in(Stage stage) const { return sources[static_cast<unsigned>(stage)]; }
  const Offsets& targets_in(Stage stage) const { return targets[static_cast<unsigned>(stage)]; }
  // How much greater than its index among the parts a send stream's offset is.
  unsigned beyond_part() const {
    return parts == 1 && send_streams.count() != 0 ? send_streams.first : 0;
  }
  // The part of these units that goes to the digit.
  UnitRange part_of(const UnitRange& units, unsigned digit_value) const {
    return parts == 1 ? units : part(units, digit_value, radix);
  }
  // Of the peers by number 0, 1, ...: their offsets, and back.
  unsigned offset_of_peer(unsigned i) const {
    return is_ring() && i == 1 ? radix - 1 : send_streams.first + i;
  }
  unsigned number_of_peer(unsigned r) const { return std::min(r, peers) - 1; }
};

class ThreadSchedule {
 public:
  ThreadSchedule(const Plan& plan, Rank rank, unsigned thread)
      : ThreadSchedule(plan, rank, thread, plan.thread_part(thread)) {}
  // The same with another share of each buffer than its weight gives it.
  ThreadSchedule(const Plan& plan, Rank rank, unsigned thread, PartRange share);

  Rank rank() const { return rank_; }
  std::uint32_t ranks() const { return ranks_; }
  unsigned thread() const { return thread_; }
  PartRange thread_part() const { return thread_part_; }  // Plan::thread_part()
  bool plan_has_root_step() const { return plan_has_root_step_; }
  bool plan_doubles() const { return plan_doubles_; }
  unsigned steps() const { return steps_; }
  const ScheduleStep& step(unsigned w) const { return schedule_[w]; }
  unsigned last_step() const { return steps_ - 1; }

  // The digit of the peer at offset r of step w, and back.
  unsigned digit_at_offset(unsigned w, unsigned r) const {
    return step_pattern::digit_at_offset(schedule_[w].radix, schedule_[w].digit, r);
  }
  unsigned offset_of_digit(unsigned w, unsigned digit) const {
    return step_pattern::offset_of_digit(schedule_[w].radix, schedule_[w].digit, digit);
  }

  // Of any rank.
  unsigned digit_of_rank(unsigned w, Rank rank) const {
    const unsigned by_number = rank / schedule_[w].stride % schedule_[w].radix;
    return schedule_[w].order == nullptr ? by_number : schedule_[w].order->digit(by_number);
  }
  // The offset of the peer that has the digit of `rank` in step w, whatever its other digits are; 0
  // if this rank has it.
  unsigned offset_of_rank(unsigned w, Rank rank) const {
    return offset_of_digit(w, digit_of_rank(w, rank));
  }

  // The peer at offset r of step w; with r = 0, this rank.
  Rank peer(unsigned w, unsigned r) const { return rank_ + distance(w, r); }
  // How much greater the rank of the peer at offset r is, modulo 2^32.
  Rank distance(unsigned w, unsigned r) const {
    const ScheduleStep& step = schedule_[w];
    const unsigned digit = digit_at_offset(w, r);
    if (step.order == nullptr) return (digit - step.digit) * step.stride;
    return (step.order->by_number(digit) - step.order->by_number(step.digit)) * step.stride;
  }

 private:
  Rank rank_;
  unsigned thread_;
  PartRange thread_part_;
  std::uint32_t ranks_;
  bool plan_has_root_step_;
  bool plan_doubles_;
  unsigned steps_;
  std::array<ScheduleStep, kMaxSteps> schedule_{};
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_THREAD_SCHEDULE_H_
