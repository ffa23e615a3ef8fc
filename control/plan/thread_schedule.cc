#include "control/plan/thread_schedule.h"

#include <fmt/format.h>
#include <stdexcept>

namespace gradcube::control {

ThreadSchedule::ThreadSchedule(const Plan& plan, Rank rank, unsigned thread)
    : rank_(rank),
      thread_(thread),
      thread_part_(plan.thread_part(thread)),
      steps_(plan.steps(thread)) {
  std::uint32_t pieces = 1;
  for (unsigned w = steps_; w-- > 0;) {
    const PlanStep& step = plan.step(thread, w);
    try {
      step_pattern::require_runnable(step);
    } catch (const std::invalid_argument& error) {
      throw std::invalid_argument(fmt::format("algorithm {}, thread {}, step {}: {}",
                                              plan.algorithm(), thread, w, error.what()));
    }
    schedule_[w] = {step.radix, step.stride, step.digit(rank), pieces};
    pieces *= step.radix;
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
