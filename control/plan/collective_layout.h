// Where the segments of one collective lie: in the streams of one thread (sequences) and in the
// trainer's buffer (bytes).
//
// Every rank computes the same layout from the plan, the collective and the segment size, so a
// segment is named on the wire by its sequence alone. All division is byte_range.h's.
//
// CONTIGUOUS (all_reduce, broadcast, reduce, barrier): the buffer is divided among the threads by
// their weights, each share by the digits of the piece's owner in the order of the thread's steps,
// and each piece into segments. So what a rank still works on when a step begins is one contiguous
// range, and its part y is what goes to the peer with digit y. Short pieces that lie side by side
// travel as one: the streams have the least depth whose blocks are no longer than a segment, and no
// longer than the caller wants (stream_positions.h). So in a small collective each exchange is one
// segment.
//
// RANK-ORDERED (reduce_scatter, all_gather): the buffer is a chunk for each rank. The piece of
// thread t and owner o is thread t's share of chunk o, cut into segments. A chunk has any number of
// bytes; its units count from its own begin, and its last one may be partial. What goes to a peer
// is then several ranges, one in each chunk, and every block is a piece.
//
// A plan with a step of the pattern root (step_pattern.h) has no such pieces: where it has a root,
// a chunk has not ended at its rank, or is not there yet. It runs both as an all-reduce, contiguous
// and in both stages. In a reduce_scatter every rank then gets more than its chunk. In an
// all_gather, what would be added is chosen: of each chunk the value that has come from its rank's
// side, chunk_part().
//
// A plan whose steps double is one block, and has no broadcast stage. It runs all-reduces and
// barriers alone (plan_choice.h).
//
// Every block of a thread has the same number of segments, of equal size but for its last one (what
// is sent together is cheap where it has one length: datagram_trains.h). Short blocks have empty
// segments. In a stage that the kind has, each exchange has at least one segment, so that
// even an empty collective meets every peer and is checked against it. The streams of a stage that
// the kind does not have are of no length.
//
// ROUNDS. The streams of a mesh's step are one round long. Those of a ring's step have radix-1
// rounds of that length, one behind the other, and which part of the buffer a round is about is
// known from both ends (thread_schedule.h): part_sent(), part_received().
//
// SKIPPED. Where a lane has several plans (plan_choice.h), a collective that another one runs has
// streams of no length here.
//
// CARRYING. With a root, streams keep their full length, but only some segments carry bytes; the
// others are sent empty.
//
//   - A broadcast scatters the root's buffer in the aggregation stage: at step w a rank carries iff
//     its digits in the steps w, w+1, ... equal the root's, so that it has what it sends. Then
//     follows an all-gather.
//   - A reduce gathers the results in the broadcast stage: at the mirror of step w a rank carries
//     to the peer whose digit in step w is the root's, iff its own digits in the steps after w
//     equal the root's.
//   - In a ring it is the rounds that carry or do not, as the root's buffer comes round from the
//     root, and as results come round to it.
//
// Units: bytes of the buffer. Sequences are 64 bits, counted from the job's last reset, for each
// stage and step. A plain value, owned by the thread's PlanExecutor; nothing allocates.
#ifndef GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_
#define GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_

#include <algorithm>
#include <array>
#include <cstdint>

#include "control/plan/base/byte_range.h"
#include "control/plan/collective_kind.h"
#include "control/plan/stream_positions.h"
#include "control/plan/thread_schedule.h"

namespace gradcube::control {

// What decides the layout of a collective.
struct CollectiveShape {
  CollectiveKind kind = CollectiveKind::all_reduce;
  Rank root = 0;            // if has_root()
  std::uint64_t bytes = 0;  // of the whole buffer; if is_rank_ordered(), a multiple of the ranks
  // If is_rank_ordered(): whose chunk is where, by rank; null: each rank's at its own number. Must
  // outlive the layout.
  const Rank* chunk_of_rank = nullptr;
};

// The bytes of one segment.
struct SegmentRange {
  std::uint64_t begin = 0;
  std::uint32_t bytes = 0;

  bool operator==(const SegmentRange&) const = default;
};

class CollectiveLayout {
 public:
  using StepSequences = std::array<std::uint64_t, kMaxSteps>;
  using StageSequences = std::array<StepSequences, kStages>;

  CollectiveLayout() = default;

  // Of a collective whose buffer's positions_fit(). segment_bytes: the most that a segment carries,
  // a multiple of kUnitBytes. first[stage][w]: the sequence of this collective's first segment in
  // the stage's streams of step w. block_bytes: several pieces travel as one up to so many bytes.
  CollectiveLayout(const ThreadSchedule& schedule, const CollectiveShape& shape,
                   std::uint32_t segment_bytes, const StageSequences& first,
                   std::uint32_t block_bytes = UINT32_MAX);

  // Of a collective that is skipped: it begins and ends where the streams are.
  static CollectiveLayout skipped(const StageSequences& first) {
    CollectiveLayout layout;
    layout.skipped_ = true;
    layout.first_ = layout.end_ = first;
    return layout;
  }
  bool is_skipped() const { return skipped_; }

  // Whether the positions of a collective of any kind with a buffer of `bytes`, and with any
  // shorter one, fit into the 32 bits that they have. To be checked at set-up, against the largest
  // buffer that there can be.
  static bool positions_fit(const ThreadSchedule& schedule, std::uint64_t bytes,
                            std::uint32_t segment_bytes);

  // The sequences of this collective in a stage's streams of step w.
  std::uint64_t first(Stage stage, unsigned w) const {
    return first_[static_cast<unsigned>(stage)][w];
  }
  std::uint64_t end(Stage stage, unsigned w) const { return end_[static_cast<unsigned>(stage)][w]; }
  // Whether its streams have any length.
  bool has_stage(Stage stage) const {
    if (skipped_ || (doubles_ && stage == Stage::broadcast)) return false;
    return as_all_reduce_ || control::has_stage(kind_, stage);
  }

  const StreamPositions& positions() const { return positions_; }

  // The positions of step w's streams in one round.
  std::uint32_t round_length(unsigned w) const {
    return segments_per_block_ * positions_.blocks(w);
  }
  // The sequence of position 0 of the receive stream of step w in the last round of the aggregation
  // stage: there its sums become complete.
  std::uint64_t sums(unsigned w) const {
    return first(Stage::aggregation, w) + std::uint64_t{round_length(w)} * (rounds_[w] - 1U);
  }

  // A position of the send stream (w, offset); with offset 0, of the receive stream.
  struct Part {
    unsigned offset;
    std::uint32_t position;
    unsigned round;  // in which it passes
  };
  // What this rank sends to the peer at offset r of step w, a target, at this position of a
  // stage's stream, counted over all rounds.
  Part part_sent(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
                 std::uint32_t position) const {
    const auto [round, q] = in_round(w, position);
    if (stage == Stage::aggregation) {
      return {std::max(r, schedule.step(w).first_sent) - round, q, round};
    }
    return {round == 0 ? 0 : schedule.step(w).radix - round, q, round};
  }
  // The same of what it receives from the peer at offset r, a source.
  Part part_received(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
                     std::uint32_t position) const {
    const auto [round, q] = in_round(w, position);
    if (stage == Stage::aggregation) return {schedule.step(w).first_sent - 1 - round, q, round};
    return {r - round, q, round};
  }

  // The segment at position q of the send stream (w, r); with r = 0, of the receive stream of w.
  // Whether it carries these bytes is for sends() and receives() to say.
  SegmentRange segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                       std::uint32_t q) const {
    return is_contiguous() ? contiguous_segment(schedule, w, r, q)
                           : rank_ordered_segment(schedule, w, r, q);
  }

  // Of an all_gather that has an aggregation stage: what of this segment is the rank's own chunk.
  SegmentRange chunk_part(const ThreadSchedule& schedule, Rank rank, SegmentRange segment) const;

  // Whether the segment that this rank sends to the peer at offset r != 0 of step w in a round, or
  // gets from it, carries its bytes. If not, it is empty.
  bool sends(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
             unsigned round) const {
    return all_carry_ || some_send(schedule, stage, w, r, round);
  }
  bool receives(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
                unsigned round) const {
    return all_carry_ || some_receive(schedule, stage, w, r, round);
  }

 private:
  bool is_contiguous() const { return as_all_reduce_ || !is_rank_ordered(kind_); }
  SegmentRange contiguous_segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                                  std::uint32_t q) const;
  SegmentRange rank_ordered_segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                                    std::uint32_t q) const;
  // Where all_carry_ does not say it.
  bool some_send(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
                 unsigned round) const;
  bool some_receive(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned r,
                    unsigned round) const;
  bool is_up(const ThreadSchedule& schedule, unsigned w, unsigned r) const;
  bool ring_carries(const ThreadSchedule& schedule, Stage stage, unsigned w, unsigned sender_offset,
                    unsigned round) const;
  struct InRound {
    unsigned round;
    std::uint32_t position;
  };
  InRound in_round(unsigned w, std::uint32_t position) const {
    const std::uint32_t length = round_length(w);
    if (position < length) return {0, position};  // as always in a mesh
    return {position / length, position % length};
  }

  CollectiveKind kind_ = CollectiveKind::all_reduce;
  bool as_all_reduce_ = false;  // a rank-ordered kind on a plan with a root
  bool doubles_ = false;
  bool skipped_ = false;
  bool all_carry_ = false;  // in both stages, from all ranks
  Rank root_ = 0;
  const Rank* chunk_of_rank_ = nullptr;
  // The first step from which on this rank's digits are the root's.
  unsigned root_from_ = 0;
  StreamPositions positions_;
  std::uint32_t segments_per_block_ = 1;
  std::array<std::uint16_t, kMaxSteps> rounds_{};  // of each step
  std::uint64_t divided_bytes_ = 0;                // of the buffer, or of a chunk
  StageSequences first_{};
  StageSequences end_{};
  // active_[w]: what this rank still works on when step w begins. If rank-ordered, active_[0] alone
  // counts: the thread's share of a chunk.
  std::array<UnitRange, kMaxSteps + 1> active_{};
};

// The divisions of the buffer lead to the block.
inline SegmentRange CollectiveLayout::contiguous_segment(const ThreadSchedule& schedule, unsigned w,
                                                         unsigned r, std::uint32_t q) const {
  UnitRange units = r == 0 ? active_[w + 1]
                           : schedule.step(w).part_of(active_[w], schedule.digit_at_offset(w, r));
  std::uint32_t in_block = q;
  if (w + 1 < positions_.depth()) {
    in_block = q / positions_.blocks(w);
    std::uint32_t index = q - in_block * positions_.blocks(w);
    for (unsigned u = w + 1; u < positions_.depth(); ++u) {
      const unsigned offset = index / positions_.blocks(u);
      index -= offset * positions_.blocks(u);
      units = schedule.step(u).part_of(units, schedule.digit_at_offset(u, offset));
    }
  }
  const ByteRange bytes = bytes_of(slice(units, in_block, segments_per_block_), divided_bytes_);
  return {bytes.begin, static_cast<std::uint32_t>(bytes.size())};
}

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_PLAN_COLLECTIVE_LAYOUT_H_
