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
    schedule_[w] = {.radix = step.radix,
                    .stride = step.stride,
                    .digit = step.digit(rank),
                    .pieces = pieces,
                    .rounds = step.rounds(),
                    .peers = step.is_ring() ? 2 : step.radix - 1,
                    .first_source = step.is_ring() ? step.radix - 1 : 1,
                    .last_target = step.is_ring() ? 1 : step.radix - 1,
                    .order = step.order};
    pieces *= step.radix;
  }
}

}  // namespace gradcube::control
