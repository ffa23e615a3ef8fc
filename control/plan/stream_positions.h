// The positions of a stream, and what one step needs of another: position arithmetic for one thread
// of one rank (thread_schedule.h).
//
// Blocks. A stream is cut into blocks, and each block into the same number of segments. A block is
// all pieces whose owners agree in the digits of the steps before the DEPTH: these lie side by side
// in a contiguous layout (collective_layout.h). At depth k, the number of steps, a block is a
// piece. At depth 1 each stream is one block, and what a rank gives a peer in a step goes as one. A
// stream of step w has the blocks of all its pieces, and never less than one: in steps that divide
// deeper than the depth, the stream is a part of a block.
//
// Positions. A stream carries segment 0 of all its blocks, then segment 1 of all, and so on:
// position q is segment q / blocks(w) of block number q % blocks(w). A block's number is that of a
// piece, of the digits r(w+1), ..., r(depth-1) alone. If the depth is less than k, each block is
// one segment. Where steps double, each stream is one block, of any number of segments. Then what
// one step needs of another is arithmetic:
//
//   - position q of the receive stream of step w needs the rank's own partial sum of step w-1, at
//     receive position at_previous_step(w, 0, q);
//   - position q of the send stream (w, r) is, or lies in, the partial sum of step w-1 at receive
//     position at_previous_step(w, r, q);
//     (All of a partial sum goes to the root of a step, and is all of its block. Where steps
//     double, all of it goes to every peer.)
//   - the results at receive position q of step w come back through the send stream of the first
//     later step below the depth whose r(u) of q is not 0. If there is none, they are this rank's
//     own final sum and what all send streams of the steps from the depth on bring back:
//     result_source(w, q).
//
// A plain value; nothing allocates. The functions trust their arguments to be in range.
#ifndef GRADCUBE_CONTROL_PLAN_STREAM_POSITIONS_H_
#define GRADCUBE_CONTROL_PLAN_STREAM_POSITIONS_H_

#include <array>
#include <cstdint>

#include "control/plan/thread_schedule.h"

namespace gradcube::control {

class StreamPositions {
 public:
  StreamPositions() = default;
  // 1 <= depth <= schedule.steps(). Where steps double it is 1 whatever is given.
  StreamPositions(const ThreadSchedule& schedule, unsigned depth);

  unsigned depth() const { return depth_; }
  // In each of the step's streams.
  std::uint32_t blocks(unsigned w) const { return blocks_[w]; }

  // The receive position at step w-1 of what is position q of the send stream (w, r); with r = 0,
  // of the receive stream. w >= 1.
  std::uint32_t at_previous_step(unsigned w, unsigned r, std::uint32_t q) const {
    if (w >= depth_) return q;
    const std::uint32_t segment = q / blocks_[w];
    return segment * blocks_[w - 1] + (r - beyond_part_[w]) * blocks_[w] +
           (q - segment * blocks_[w]);
  }

  struct NextStep {
    // A part of it goes to every peer of the next step, and this rank keeps one. Where steps
    // double, all of it.
    bool divided;
    // If not divided. 0: this rank keeps the segment; else it goes to the peer at this offset.
    unsigned offset;
    // In the send streams (w + 1, r), or in the receive stream.
    std::uint32_t position;
  };
  // Where receive position q of step w goes at step w+1. w < schedule.last_step().
  NextStep at_next_step(unsigned w, std::uint32_t q) const {
    if (w + 1 >= depth_) {
      const bool divides = (dividing_steps_ >> (w + 1) & 1U) != 0;
      return {divides, beyond_part_[w + 1], q};
    }
    const std::uint32_t segment = q / blocks_[w];
    const std::uint32_t index = q - segment * blocks_[w];
    const std::uint32_t later = blocks_[w + 1];
    const unsigned offset = index / later;
    return {false, offset + beyond_part_[w + 1], segment * later + (index - offset * later)};
  }

  struct ResultSource {
    // True: this rank's own final sum, at `position` in the last step's receive stream. The rest
    // comes back at the same position of all send streams of the steps `step`, step + 1, ...
    bool own;
    // Else the results come back at `position` of the send stream (step, offset).
    unsigned step;
    unsigned offset;
    std::uint32_t position;
  };
  ResultSource result_source(unsigned w, std::uint32_t q) const {
    if (w + 1 >= depth_) return {true, w + 1, 0, q};
    const std::uint32_t segment = q / blocks_[w];
    std::uint32_t index = q - segment * blocks_[w];
    for (unsigned u = w + 1; u < depth_; ++u) {
      const unsigned part = index / blocks_[u];
      index -= part * blocks_[u];
      const unsigned offset = part + beyond_part_[u];
      if (offset != 0) return {false, u, offset, segment * blocks_[u] + index};
    }
    return {true, depth_, 0, segment};
  }

 private:
  unsigned depth_ = 1;
  std::array<std::uint32_t, kMaxSteps> blocks_{};
  std::array<std::uint8_t, kMaxSteps> beyond_part_{};  // ScheduleStep::beyond_part()
  std::uint32_t dividing_steps_ = 0;                   // by bits
};

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_STREAM_POSITIONS_H_
