#include "control/plan/thread_schedule.h"

namespace gradcube::control {
namespace {

// With whom this rank exchanges in a step that it works in.
void set_peers(const PlanStep& step, ScheduleStep& of) {
  constexpr auto kAggregation = static_cast<unsigned>(Stage::aggregation);
  constexpr auto kBroadcast = static_cast<unsigned>(Stage::broadcast);
  const Offsets all{1, of.participants};
  if (step.is_root()) {
    of.peers = of.sums ? of.participants - 1 : 1;
    const unsigned root = of.radix - of.digit;  // the offset of digit 0
    of.send_streams = of.sums ? Offsets{} : Offsets{root, root + 1};
    const Offsets with = of.sums ? all : of.send_streams;
    (of.sums ? of.sources : of.targets)[kAggregation] = with;
    (of.sums ? of.targets : of.sources)[kBroadcast] = with;
    return;
  }
  of.send_streams = all;
  of.peers = step.is_ring() ? 2 : of.radix - 1;
  of.first_sent = step.is_ring() ? of.radix - 1 : 1;
  of.sources.fill({of.first_sent, of.radix});
  of.targets.fill({1, step.is_ring() ? 2 : of.radix});
  if (step.doubles()) of.sources[kBroadcast] = of.targets[kBroadcast] = {};
}

}  // namespace

ThreadSchedule::ThreadSchedule(const Plan& plan, Rank rank, unsigned thread, PartRange share)
    : rank_(rank),
      thread_(thread),
      thread_part_(share),
      ranks_(plan.ranks()),
      plan_has_root_step_(plan.has_root_step()),
      plan_doubles_(plan.doubles()),
      steps_(plan.steps(thread)) {
  std::uint32_t pieces = 1;
  for (unsigned w = steps_; w-- > 0;) {
    const PlanStep& step = plan.step(thread, w);
    schedule_[w] = {.radix = step.radix,
                    .stride = step.stride,
                    .digit = step.digit(rank),
                    .parts = step.parts(),
                    .pieces = pieces,
                    .rounds = step.rounds(),
                    .participants = step.participants(),
                    .sums = plan.works(rank, thread, w + 1),
                    .order = step.order};
    if (plan.works(rank, thread, w) && step.takes_part(rank)) set_peers(step, schedule_[w]);
    pieces *= step.parts();
  }
}

}  // namespace gradcube::control
