#include "control/plan/collective_layout.h"

#include <algorithm>

namespace gradcube::control {
namespace {

std::uint64_t divide_up(std::uint64_t count, std::uint64_t parts) {
  return count / parts + (count % parts != 0 ? 1 : 0);
}

// Enough for a piece of so many units, and at least one.
std::uint64_t count_segments(std::uint64_t longest_piece, std::uint32_t segment_bytes) {
  return std::max<std::uint64_t>(1, divide_up(longest_piece, segment_bytes / kUnitBytes));
}

// Of a contiguous layout.
std::uint64_t longest_piece(const ThreadSchedule& schedule, std::uint64_t thread_units) {
  std::uint64_t longest = thread_units;
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    longest = divide_up(longest, schedule.step(w).radix);
  }
  return longest;
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
  return segments <= UINT32_MAX / schedule.step(0).pieces;
}

CollectiveLayout::CollectiveLayout(const ThreadSchedule& schedule, const CollectiveShape& shape,
                                   std::uint32_t segment_bytes, const StageSequences& first)
    : kind_(shape.kind),
      root_(shape.root),
      chunk_of_rank_(shape.chunk_of_rank),
      root_from_(schedule.steps()),
      divided_bytes_(is_rank_ordered(shape.kind) ? shape.bytes / schedule.ranks() : shape.bytes),
      first_(first) {
  active_[0] = part(units_of(divided_bytes_), schedule.thread_part());
  const std::uint64_t longest =
      is_rank_ordered(kind_) ? active_[0].count : longest_piece(schedule, active_[0].count);
  segments_per_piece_ = static_cast<std::uint32_t>(count_segments(longest, segment_bytes));
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const ScheduleStep& step = schedule.step(w);
    active_[w + 1] = part(active_[w], step.digit, step.radix);
    length_[w] = std::uint64_t{segments_per_piece_} * step.pieces;
  }
  while (root_from_ > 0 && schedule.offset_of_rank(root_from_ - 1, root_) == 0) --root_from_;
}

// The divisions of the buffer lead to the piece.
SegmentRange CollectiveLayout::contiguous_segment(const ThreadSchedule& schedule, unsigned w,
                                                  unsigned r, std::uint32_t q) const {
  const std::uint32_t in_piece = q / schedule.step(w).pieces;
  std::uint32_t index = q - in_piece * schedule.step(w).pieces;
  UnitRange units = r == 0
                        ? active_[w + 1]
                        : part(active_[w], schedule.digit_at_offset(w, r), schedule.step(w).radix);
  for (unsigned u = w + 1; u < schedule.steps(); ++u) {
    const std::uint32_t pieces = schedule.step(u).pieces;
    const unsigned offset = index / pieces;
    index -= offset * pieces;
    units = part(units, schedule.digit_at_offset(u, offset), schedule.step(u).radix);
  }
  const ByteRange bytes = bytes_of(part(units, in_piece, segments_per_piece_), divided_bytes_);
  return {bytes.begin, static_cast<std::uint32_t>(bytes.size())};
}

// The owner's rank leads to the chunk, and all chunks are divided alike.
SegmentRange CollectiveLayout::rank_ordered_segment(const ThreadSchedule& schedule, unsigned w,
                                                    unsigned r, std::uint32_t q) const {
  const std::uint32_t in_piece = q / schedule.step(w).pieces;
  std::uint32_t index = q - in_piece * schedule.step(w).pieces;
  Rank owner = schedule.peer(w, r);
  for (unsigned u = w + 1; u < schedule.steps(); ++u) {
    const ScheduleStep& step = schedule.step(u);
    const unsigned offset = index / step.pieces;
    index -= offset * step.pieces;
    owner += (schedule.digit_at_offset(u, offset) - step.digit) * step.stride;
  }
  const ByteRange bytes = bytes_of(part(active_[0], in_piece, segments_per_piece_), divided_bytes_);
  const Rank chunk = chunk_of_rank_ == nullptr ? owner : chunk_of_rank_[owner];
  return {chunk * divided_bytes_ + bytes.begin, static_cast<std::uint32_t>(bytes.size())};
}

bool CollectiveLayout::sends(const ThreadSchedule& schedule, Stage stage, unsigned w,
                             unsigned r) const {
  if (!has_stage(kind_, stage)) return false;
  if (kind_ == CollectiveKind::broadcast && stage == Stage::aggregation) return w >= root_from_;
  if (kind_ == CollectiveKind::reduce && stage == Stage::broadcast) return is_up(schedule, w, r);
  return true;
}

bool CollectiveLayout::receives(const ThreadSchedule& schedule, Stage stage, unsigned w,
                                unsigned r) const {
  if (!has_stage(kind_, stage)) return false;
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

}  // namespace gradcube::control
