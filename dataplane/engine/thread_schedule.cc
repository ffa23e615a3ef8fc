#include "dataplane/engine/thread_schedule.h"

#include <stdexcept>

namespace gradcube::dataplane {

ThreadSchedule::ThreadSchedule(const control::Plan& plan, bcube::ServerId server, unsigned thread)
    : thread_(thread), steps_(plan.steps()) {
  if (steps_ == 0 || steps_ > kMaxSteps) throw std::logic_error("a plan has 1 to 8 steps");
  const bcube::AddressSpace& addresses = plan.space();
  std::uint32_t pieces = 1;
  for (unsigned w = steps_; w-- > 0;) {
    const unsigned level = plan.level(thread, w);
    schedule_[w] = {level, addresses.radix(level), addresses.digit(server, level), pieces};
    step_of_level_[level] = static_cast<std::uint8_t>(w);
    pieces *= addresses.radix(level);
  }
}

ThreadSchedule::ResultSource ThreadSchedule::result_source(unsigned w, std::uint32_t q) const {
  const std::uint32_t row = q / schedule_[w].pieces;
  std::uint32_t index = q - row * schedule_[w].pieces;
  for (unsigned u = w + 1; u < steps_; ++u) {
    const std::uint32_t pieces = schedule_[u].pieces;
    const unsigned offset = index / pieces;
    index -= offset * pieces;
    if (offset != 0) return {false, u, offset, row * pieces + index};
  }
  return {true, last_step(), 0, row};
}

}  // namespace gradcube::dataplane
