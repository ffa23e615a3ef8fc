#include "control/plan/stream_positions.h"

#include <algorithm>

namespace gradcube::control {

StreamPositions::StreamPositions(const ThreadSchedule& schedule, unsigned depth)
    : depth_(schedule.plan_doubles() ? 1 : depth) {
  std::uint32_t blocks = 1;
  for (unsigned w = schedule.steps(); w-- > 0;) {
    const ScheduleStep& step = schedule.step(w);
    blocks_[w] = blocks;
    if (w < depth_) blocks *= step.parts;
    beyond_part_[w] = static_cast<std::uint8_t>(step.beyond_part());
    if (step.parts > 1 || schedule.plan_doubles()) dividing_steps_ |= 1U << w;
  }
}

StreamPositions::ResultSource StreamPositions::result_source(unsigned w, std::uint32_t q) const {
  const std::uint32_t segment = q / blocks_[w];
  std::uint32_t index = q - segment * blocks_[w];
  for (unsigned u = w + 1; u < depth_; ++u) {
    const unsigned part = index / blocks_[u];
    index -= part * blocks_[u];
    const unsigned offset = part + beyond_part_[u];
    if (offset != 0) return {false, u, offset, segment * blocks_[u] + index};
  }
  return {true, std::max(w + 1, depth_), 0, segment};
}

}  // namespace gradcube::control
