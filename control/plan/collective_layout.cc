#include "control/plan/collective_layout.h"

#include <algorithm>

namespace gradcube::control {
namespace {

std::uint64_t divide_up(std::uint64_t count, std::uint64_t parts) {
  return count / parts + (count % parts != 0 ? 1 : 0);
}

// Enough for a block of so many units, and at least one.
std::uint64_t count_segments(std::uint64_t longest, std::uint32_t segment_bytes) {
  return std::max<std::uint64_t>(1, divide_up(longest, segment_bytes / kUnitBytes));
}

// Of a contiguous layout.
struct Depth {
  unsigned steps = 0;               // that divide a block
  std::uint64_t longest_block = 0;  // in units
};

// The least depth, from 1, at which no block is longer than `most` units; else the most there is.
Depth depth_of_blocks(const ThreadSchedule& schedule, std::uint64_t thread_units,
                      std::uint64_t most) {
  Depth depth{0, thread_units};
  do {
    depth.longest_block = divide_up(depth.longest_block, schedule.step(depth.steps).parts);
    ++depth.steps;
  } while (depth.longest_block > most && depth.steps < schedule.steps());
  return depth;
}

std::uint64_t longest_piece(const ThreadSchedule& schedule, std::uint64_t thread_units) {
  return depth_of_blocks(schedule, thread_units, 0).longest_block;
}

// The longest share that the thread can have of so many units, or of fewer.
std::uint64_t longest_share(const ThreadSchedule& schedule, std::uint64_t units) {
  const PartRange thread = schedule.thread_part();
  const std::uint64_t weight = thread.to - thread.from;
  return units / thread.of * weight + divide_up(units % thread.of * weight, thread.of);
}

}  // namespace

bool CollectiveLayout::positions_fit(const ThreadSchedule& schedule, std::uint64_t bytes,
                                     std::uint32_t segment_bytes) {
  const std::uint64_t units = units_of(bytes).count;
  const std::uint64_t contiguous = longest_piece(schedule, longest_share(schedule, units));
  const std::uint64_t rank_ordered = longest_share(schedule, divide_up(units, schedule.ranks()));
  const std::uint64_t segments = count_segments(std::max(contiguous, rank_ordered), segment_bytes);
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const ScheduleStep& step = schedule.step(w);
    if (segments > UINT32_MAX / (std::uint64_t{step.pieces} * step.rounds)) return false;
  }
  return true;
}

CollectiveLayout::CollectiveLayout(const ThreadSchedule& schedule, const CollectiveShape& shape,
                                   std::uint32_t segment_bytes, const StageSequences& first,
                                   std::uint32_t block_bytes)
    : kind_(shape.kind),
      as_all_reduce_(is_rank_ordered(shape.kind) && schedule.plan_has_root_step()),
      doubles_(schedule.plan_doubles()),
      root_(shape.root),
      chunk_of_rank_(shape.chunk_of_rank),
      root_from_(schedule.steps()),
      divided_bytes_(is_contiguous() ? shape.bytes : shape.bytes / schedule.ranks()),
      first_(first) {
  active_[0] = part(units_of(divided_bytes_), schedule.thread_part());
  Depth depth{schedule.steps(), active_[0].count};
  if (is_contiguous()) {
    depth = depth_of_blocks(schedule, active_[0].count,
                            std::min(segment_bytes, block_bytes) / kUnitBytes);
  }
  positions_ = StreamPositions(schedule, depth.steps);
  segments_per_block_ =
      static_cast<std::uint32_t>(count_segments(depth.longest_block, segment_bytes));
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const ScheduleStep& step = schedule.step(w);
    active_[w + 1] = step.part_of(active_[w], step.digit);
    rounds_[w] = static_cast<std::uint16_t>(step.rounds);
  }
  for (const Stage stage : {Stage::aggregation, Stage::broadcast}) {
    const auto number = static_cast<unsigned>(stage);
    end_[number] = first_[number];
    for (unsigned w = 0; has_stage(stage) && w < schedule.steps(); ++w) {
      end_[number][w] += std::uint64_t{round_length(w)} * rounds_[w];
    }
  }
  // Both stages' streams have a length, and neither scatters or gathers.
  all_carry_ = has_stage(Stage::aggregation) && has_stage(Stage::broadcast) &&
               kind_ != CollectiveKind::broadcast && kind_ != CollectiveKind::reduce;
  while (root_from_ > 0 && schedule.offset_of_rank(root_from_ - 1, root_) == 0) --root_from_;
}

// The owner's rank leads to the chunk, and all chunks are divided alike.
SegmentRange CollectiveLayout::rank_ordered_segment(const ThreadSchedule& schedule, unsigned w,
                                                    unsigned r, std::uint32_t q) const {
  const std::uint32_t in_piece = q / schedule.step(w).pieces;
  std::uint32_t index = q - in_piece * schedule.step(w).pieces;
  Rank owner = schedule.peer(w, r);
  for (unsigned u = w + 1; u < schedule.steps(); ++u) {
    const std::uint32_t pieces = schedule.step(u).pieces;
    const unsigned offset = index / pieces;
    index -= offset * pieces;
    owner += schedule.distance(u, offset);
  }
  const ByteRange bytes =
      bytes_of(slice(active_[0], in_piece, segments_per_block_), divided_bytes_);
  const Rank chunk = chunk_of_rank_ == nullptr ? owner : chunk_of_rank_[owner];
  return {chunk * divided_bytes_ + bytes.begin, static_cast<std::uint32_t>(bytes.size())};
}

SegmentRange CollectiveLayout::chunk_part(const ThreadSchedule& schedule, Rank rank,
                                          SegmentRange segment) const {
  const std::uint64_t chunk_bytes = divided_bytes_ / schedule.ranks();
  const std::uint64_t chunk = chunk_of_rank_ == nullptr ? rank : chunk_of_rank_[rank];
  const std::uint64_t begin = std::max(segment.begin, chunk * chunk_bytes);
  const std::uint64_t end = std::min(segment.begin + segment.bytes, (chunk + 1) * chunk_bytes);
  if (begin >= end) return {segment.begin, 0};
  return {begin, static_cast<std::uint32_t>(end - begin)};
}

bool CollectiveLayout::some_send(const ThreadSchedule& schedule, Stage stage, unsigned w,
                                 unsigned r, unsigned round) const {
  if (!has_stage(stage)) return false;
  if (schedule.step(w).is_ring()) return ring_carries(schedule, stage, w, 0, round);
  if (kind_ == CollectiveKind::broadcast && stage == Stage::aggregation) return w >= root_from_;
  if (kind_ == CollectiveKind::reduce && stage == Stage::broadcast) return is_up(schedule, w, r);
  return true;
}

bool CollectiveLayout::some_receive(const ThreadSchedule& schedule, Stage stage, unsigned w,
                                    unsigned r, unsigned round) const {
  if (!has_stage(stage)) return false;
  if (schedule.step(w).is_ring()) return ring_carries(schedule, stage, w, r, round);
  if (kind_ == CollectiveKind::broadcast && stage == Stage::aggregation) {
    return is_up(schedule, w, r);
  }
  if (kind_ == CollectiveKind::reduce && stage == Stage::broadcast) return w >= root_from_;
  return true;
}

// Whether the peer at offset r of step w has the root's digits in the steps w, w+1, ...: it is next
// to this rank on the way to the root.
bool CollectiveLayout::is_up(const ThreadSchedule& schedule, unsigned w, unsigned r) const {
  return w + 1 >= root_from_ && r == schedule.offset_of_rank(w, root_);
}

// Whether the rank at `sender_offset` of a ring's step, this one or the one before it, carries in a
// round what it sends. A broadcast's buffer has reached a rank that is d digits behind the root
// when the part that set out at the root in round 0 has made d steps. A result of a reduce goes on
// until it is at the root.
bool CollectiveLayout::ring_carries(const ThreadSchedule& schedule, Stage stage, unsigned w,
                                    unsigned sender_offset, unsigned round) const {
  const bool scatters = kind_ == CollectiveKind::broadcast && stage == Stage::aggregation;
  const bool gathers = kind_ == CollectiveKind::reduce && stage == Stage::broadcast;
  if (!scatters && !gathers) return true;
  if (w + 1 < root_from_) return false;  // not the root's ring
  const unsigned radix = schedule.step(w).radix;
  const unsigned sender = schedule.digit_at_offset(w, sender_offset);
  const unsigned root = schedule.digit_of_rank(w, root_);
  if (scatters) return step_pattern::offset_of_digit(radix, root, sender) <= round;
  const unsigned to_root = step_pattern::offset_of_digit(radix, sender, root);
  return to_root != 0 && to_root + round < radix;
}

}  // namespace gradcube::control
