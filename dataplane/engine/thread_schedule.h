// The part of a plan that one thread of one server executes, in the form the data path wants it:
// small arrays and plain arithmetic, computed once when a job starts.
//
// Streams. In step w of the aggregation stage a server receives, from each neighbour at the step's
// level, the same ordered stream of segments: the INWARD stream of that step. What it sends to the
// neighbour whose digit is its own plus r is that neighbour's inward stream: the OUTWARD stream (w,
// r). The broadcast stage runs the same streams backwards: a server sends its inward stream of step
// w, now holding results, to every neighbour of that step, and receives outward stream (w, r) from
// the neighbour at offset r.
//
// Positions. A stream has `rows` rows of pieces(w) segments. Position q is segment q / pieces(w) of
// the piece whose digits at the later steps are the mixed-radix digits of q % pieces(w), each
// rotated by the receiver's own digit (control/plan/plan.h). With offsets instead of digits,
// dependencies between steps are arithmetic:
//
//   - position q of the inward stream of step w needs the server's own partial sum of step w-1,
//     at inward position at_previous_step(w, 0, q);
//   - position q of the outward stream (w, r) is the partial sum of step w-1 at inward position
//     at_previous_step(w, r, q);
//   - the result at inward position q of step w is this server's own final sum if every offset of
//     q is 0; else it comes back through the outward stream of the first later step whose offset
//     is not 0: result_source(w, q).
//
// Implements Algorithm 1 of the BML paper: the sets that CalcGset and CheckDigits define, as
// contiguous ranges. Immutable after construction; any thread may read it.
#ifndef GRADCUBE_DATAPLANE_ENGINE_THREAD_SCHEDULE_H_
#define GRADCUBE_DATAPLANE_ENGINE_THREAD_SCHEDULE_H_

#include <array>
#include <cstdint>

#include "control/plan/plan.h"

namespace gradcube::dataplane {

inline constexpr unsigned kMaxSteps = 8;

struct ScheduleStep {
  unsigned level = 0;
  unsigned radix = 1;
  unsigned digit = 0;        // this server's digit at `level`
  std::uint32_t pieces = 1;  // segments per row of the step's streams
};

class ThreadSchedule {
 public:
  ThreadSchedule(const control::Plan& plan, bcube::ServerId server, unsigned thread);

  unsigned thread() const { return thread_; }
  unsigned steps() const { return steps_; }
  const ScheduleStep& step(unsigned w) const { return schedule_[w]; }
  unsigned last_step() const { return steps_ - 1; }

  // The step that uses `level`; each level is used by exactly one step.
  unsigned step_of_level(unsigned level) const { return step_of_level_[level]; }

  // The neighbour's digit at step w, and back.
  unsigned digit_at_offset(unsigned w, unsigned r) const {
    const unsigned digit = schedule_[w].digit + r;
    return digit >= schedule_[w].radix ? digit - schedule_[w].radix : digit;
  }
  unsigned offset_of_digit(unsigned w, unsigned digit) const {
    return digit >= schedule_[w].digit ? digit - schedule_[w].digit
                                       : digit + schedule_[w].radix - schedule_[w].digit;
  }

  // Inward position at step w-1 of what is position q of stream (w, r); r = 0 is the inward stream.
  // w >= 1.
  std::uint32_t at_previous_step(unsigned w, unsigned r, std::uint32_t q) const {
    const std::uint32_t pieces = schedule_[w].pieces;
    const std::uint32_t row = q / pieces;
    return row * schedule_[w - 1].pieces + r * pieces + (q - row * pieces);
  }

  struct NextStep {
    unsigned
        offset;  // 0: this server keeps the segment, else it goes to the neighbour at this offset
    std::uint32_t position;  // in stream (w + 1, offset)
  };
  // Where inward position q of step w goes at step w+1. w < last_step().
  NextStep at_next_step(unsigned w, std::uint32_t q) const {
    const std::uint32_t row = q / schedule_[w].pieces;
    const std::uint32_t index = q - row * schedule_[w].pieces;
    const std::uint32_t later = schedule_[w + 1].pieces;
    const unsigned offset = index / later;
    return {offset, row * later + (index - offset * later)};
  }

  struct ResultSource {
    bool own;  // this server owns the piece: position counts rows, in the last step's inward stream
    unsigned step;  // else it comes back through outward stream (step, offset) at position
    unsigned offset;
    std::uint32_t position;
  };
  ResultSource result_source(unsigned w, std::uint32_t q) const;

 private:
  unsigned thread_;
  unsigned steps_;
  std::array<ScheduleStep, kMaxSteps> schedule_{};
  std::array<std::uint8_t, kMaxSteps> step_of_level_{};
};

}  // namespace gradcube::dataplane

#endif
