#include "control/plan/collective_layout.h"

#include <algorithm>

namespace gradcube::control {
namespace {

// Enough for the longest piece of the thread, and at least one.
std::uint64_t count_segments(const ThreadSchedule& schedule, std::uint64_t thread_units,
                             std::uint32_t segment_bytes) {
  std::uint64_t longest_piece = thread_units;
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const std::uint64_t radix = schedule.step(w).radix;
    longest_piece = (longest_piece + radix - 1) / radix;
  }
  const std::uint64_t segment_units = segment_bytes / kUnitBytes;
  return std::max<std::uint64_t>(1, (longest_piece + segment_units - 1) / segment_units);
}

}  // namespace

bool CollectiveLayout::positions_fit(const ThreadSchedule& schedule, std::uint64_t bytes,
                                     std::uint32_t segment_bytes) {
  // The share of a shorter buffer is at most this long, whatever is left over by its division.
  const PartRange thread = schedule.thread_part();
  const std::uint64_t units = units_of(bytes).count;
  const std::uint64_t each = units / thread.of;
  const std::uint64_t rest = units - each * thread.of;
  const std::uint64_t weight = thread.to - thread.from;
  const std::uint64_t share = each * weight + (rest * weight + thread.of - 1) / thread.of;
  const std::uint64_t segments = count_segments(schedule, share, segment_bytes);
  return segments <= UINT32_MAX / schedule.step(0).pieces;
}

CollectiveLayout::CollectiveLayout(const ThreadSchedule& schedule, std::uint64_t bytes,
                                   std::uint32_t segment_bytes,
                                   const std::array<std::uint64_t, kMaxSteps>& first)
    : buffer_bytes_(bytes), first_(first) {
  active_[0] = part(units_of(bytes), schedule.thread_part());
  segments_per_piece_ =
      static_cast<std::uint32_t>(count_segments(schedule, active_[0].count, segment_bytes));
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const ScheduleStep& step = schedule.step(w);
    active_[w + 1] = part(active_[w], step.digit, step.radix);
    end_[w] = first_[w] + std::uint64_t{segments_per_piece_} * step.pieces;
  }
}

SegmentRange CollectiveLayout::segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                                       std::uint32_t q) const {
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
  const ByteRange bytes = bytes_of(part(units, in_piece, segments_per_piece_), buffer_bytes_);
  return {bytes.begin, static_cast<std::uint32_t>(bytes.size())};
}

}  // namespace gradcube::control
