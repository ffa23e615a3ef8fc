#include "control/plan/stream_positions.h"

#include <algorithm>

namespace gradcube::control {

StreamPositions::StreamPositions(const ThreadSchedule& schedule, unsigned depth) : depth_(depth) {
  std::uint32_t blocks = 1;
  for (unsigned w = schedule.steps(); w-- > 0;) {
    blocks_[w] = blocks;
    if (w < depth) blocks *= schedule.step(w).radix;
  }
}

StreamPositions::ResultSource StreamPositions::result_source(unsigned w, std::uint32_t q) const {
  const std::uint32_t segment = q / blocks_[w];
  std::uint32_t index = q - segment * blocks_[w];
  for (unsigned u = w + 1; u < depth_; ++u) {
    const unsigned offset = index / blocks_[u];
    index -= offset * blocks_[u];
    if (offset != 0) return {false, u, offset, segment * blocks_[u] + index};
  }
  return {true, std::max(w + 1, depth_), 0, segment};
}

}  // namespace gradcube::control
