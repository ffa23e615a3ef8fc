#include "dataplane/engine/collective_layout.h"

#include <algorithm>
#include <stdexcept>

namespace gradcube::dataplane {

CollectiveLayout::CollectiveLayout(const ThreadSchedule& schedule, control::ByteRange thread_range,
                                   std::uint64_t total_bytes, std::uint32_t segment_bytes,
                                   const std::array<std::uint64_t, kMaxSteps>& first)
    : total_bytes_(total_bytes), first_(first) {
  const std::uint64_t begin = thread_range.begin / kUnit;
  const std::uint64_t end = (thread_range.end + kUnit - 1) / kUnit;
  held_[0] = {begin, end - begin};
  std::uint64_t longest_piece = end - begin;
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const ScheduleStep& step = schedule.step(w);
    held_[w + 1] = part(held_[w], step.digit, step.radix);
    longest_piece = (longest_piece + step.radix - 1) / step.radix;
  }
  const std::uint64_t segment_units = segment_bytes / kUnit;
  const std::uint64_t rows =
      std::max<std::uint64_t>(1, (longest_piece + segment_units - 1) / segment_units);
  if (rows * schedule.step(0).pieces > UINT32_MAX)
    throw std::length_error("the buffer is too long");
  rows_ = static_cast<std::uint32_t>(rows);
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    end_[w] = first_[w] + rows * schedule.step(w).pieces;
  }
}

SegmentRange CollectiveLayout::segment(const ThreadSchedule& schedule, unsigned w, unsigned r,
                                       std::uint32_t q) const {
  const std::uint32_t row = q / schedule.step(w).pieces;
  std::uint32_t index = q - row * schedule.step(w).pieces;
  Units units = r == 0 ? held_[w + 1]
                       : part(held_[w], schedule.digit_at_offset(w, r), schedule.step(w).radix);
  for (unsigned u = w + 1; u < schedule.steps(); ++u) {
    const std::uint32_t pieces = schedule.step(u).pieces;
    const unsigned offset = index / pieces;
    index -= offset * pieces;
    units = part(units, schedule.digit_at_offset(u, offset), schedule.step(u).radix);
  }
  units = part(units, row, rows_);
  const std::uint64_t begin = std::min(units.begin * kUnit, total_bytes_);
  const std::uint64_t end = std::min((units.begin + units.count) * kUnit, total_bytes_);
  return {begin, static_cast<std::uint32_t>(end - begin)};
}

}  // namespace gradcube::dataplane
