#include "control/plan/stream_positions.h"

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

}  // namespace gradcube::control
