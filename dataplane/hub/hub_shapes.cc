#include "dataplane/hub/hub_shapes.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

using control::CollectiveLayout;
using control::SegmentRange;
using control::Stage;

namespace {

constexpr std::uint32_t kCacheLine = 64;

std::uint32_t aligned(std::uint32_t bytes) {
  return (bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

// The longest segment that is contributed in a step.
std::uint32_t longest_contribution(const control::ThreadSchedule& schedule,
                                   const CollectiveLayout& layout, unsigned w,
                                   std::uint32_t length) {
  std::uint32_t longest = 0;
  for (std::uint32_t position = 0; position < length; ++position) {
    const auto part = layout.part_received(schedule, Stage::aggregation, w, 0, position);
    longest = std::max(longest, layout.segment(schedule, w, part.offset, part.position).bytes);
  }
  return longest;
}

}  // namespace

HubShape::HubShape(const control::ThreadSchedule& schedule, std::uint64_t chunk_bytes,
                   std::uint32_t segment_bytes, std::uint32_t block_bytes)
    : bytes(chunk_bytes), layout(schedule, {.bytes = chunk_bytes}, segment_bytes, {}, block_bytes) {
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    const control::ScheduleStep& step = schedule.step(w);
    length[w] = static_cast<std::uint32_t>(layout.end(Stage::aggregation, w));
    if (length[w] > kMostPositions) {
      throw control::UsageError(
          fmt::format("chunks of {} bytes make {} segments in a step: expected at most {}: make "
                      "shorter chunks, or take a larger MTU",
                      chunk_bytes, length[w], kMostPositions));
    }
    const unsigned sources = step.sources_in(Stage::aggregation).count();
    reduced_at[w] = gathering_bits;
    arrived_at[w] = gathering_bits + (step.sums ? length[w] : 0);
    gathering_bits = arrived_at[w] + std::uint64_t{sources} * length[w];
    counts_at[w] = counts;
    landing_at[w] = landing_places;
    results += step.sources_in(Stage::broadcast).count() * length[w];
    if (!step.sums) continue;
    counts += length[w];
    reductions += length[w];
    slot[w] = aligned(longest_contribution(schedule, layout, w, length[w]));
    landings[w] = sources * length[w];
    landing_places += landings[w];
  }
  // Results lie at a word of their own, so that each half is forgotten by whole words.
  constexpr std::uint64_t kWord = 64;
  gathering_bits = (gathering_bits + kWord - 1) / kWord * kWord;
  bits = gathering_bits;
  for (unsigned w = 0; w < schedule.steps(); ++w) {
    results_at[w] = bits;
    bits += std::uint64_t{schedule.step(w).sources_in(Stage::broadcast).count()} * length[w];
  }
  bits = (bits + kWord - 1) / kWord * kWord;
  const unsigned last = schedule.last_step();
  if (!schedule.step(last).sums) return;
  owned = {chunk_bytes, 0};
  for (std::uint32_t q = 0; q < layout.round_length(last); ++q) {
    const SegmentRange range = layout.segment(schedule, last, 0, q);
    if (range.bytes == 0) continue;
    owned.begin = std::min(owned.begin, range.begin);
    owned.end = std::max(owned.end, range.begin + range.bytes);
  }
  if (owned.begin > owned.end) owned = {};
}

}  // namespace gradcube::dataplane
