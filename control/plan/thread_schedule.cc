#include "control/plan/thread_schedule.h"

namespace gradcube::control {

ThreadSchedule::ThreadSchedule(const Plan& plan, ServerId server, unsigned thread)
    : thread_(thread), threads_(plan.threads()), steps_(plan.steps()) {
  const AddressSpace& addresses = plan.space();
  std::uint32_t pieces = 1;
  for (unsigned w = steps_; w-- > 0;) {
    const unsigned level = plan.level(thread, w);
    schedule_[w] = {level, addresses.radix(level), addresses.digit(server, level), pieces};
    step_of_level_[level] = static_cast<std::uint8_t>(w);
    pieces *= addresses.radix(level);
  }
}

ThreadSchedule::ResultSource ThreadSchedule::result_source(unsigned w, std::uint32_t q) const {
  const std::uint32_t segment = q / schedule_[w].pieces;
  std::uint32_t index = q - segment * schedule_[w].pieces;
  for (unsigned u = w + 1; u < steps_; ++u) {
    const std::uint32_t pieces = schedule_[u].pieces;
    const unsigned offset = index / pieces;
    index -= offset * pieces;
    if (offset != 0) return {false, u, offset, segment * pieces + index};
  }
  return {true, last_step(), 0, segment};
}

}  // namespace gradcube::control
