// What an engine does of the hubs of its jobs.

#include <algorithm>
#include <utility>

#include "dataplane/engine/engine.h"
#include "dataplane/engine/flow_users.h"

namespace gradcube::dataplane {

std::uint32_t Engine::check_hub(const control::hub::HubModel& model,
                                const ServerHubShape& shape) const {
  std::uint32_t flows = 0;
  for (const control::hub::HubExecution& execution : model.executions()) {
    if (!runs(execution.number)) continue;
    const control::ThreadSchedule schedule(*shape.plan, shape.rank, execution.thread);
    for (unsigned w = 0; w < schedule.steps(); ++w) flows += 2 * schedule.step(w).peers;
  }
  return flows;
}

std::unique_ptr<EngineHub> Engine::prepare_hub(EngineJob& job, std::shared_ptr<ServerHub> hub,
                                               PacketReservation reserved) const {
  auto part = std::make_unique<EngineHub>(std::move(hub), std::move(reserved));
  const auto& executions = part->hub().model().executions();
  for (std::size_t place = 0; place < executions.size(); ++place) {
    if (runs(executions[place].number)) {
      part->add_executor(job, place, settings_.flows, job.window());
    }
  }
  return part;
}

void Engine::attach_hub(EngineJob& job, std::unique_ptr<EngineHub> hub) {
  watch_.wake(job);
  job.set_hub(std::move(hub));
  job.hub_disagreement_told = false;
  try {
    job.hub()->for_each_flow([this](Flow& flow) {
      add_flow(flow);
      connect(flow);
    });
    with_hubs_.push_back(&job);
  } catch (...) {  // there is no memory for it
    detach_hub(job);
    throw;
  }
}

void Engine::detach_hub(EngineJob& job) {
  if (job.hub() == nullptr) return;
  job.hub()->for_each_flow([this](Flow& flow) { close(flow); });
  std::erase(with_hubs_, &job);
  job.take_hub_off();
}

// Returns how much it has done.
unsigned Engine::work_hubs() {
  unsigned worked = 0;
  for (EngineJob* job : with_hubs_) {
    if (!job->moves()) continue;
    unsigned done = 0;
    for (HubExecutor& executor : job->hub()->executors()) {
      done += executor.begin_pushed() ? 1 : 0;
      if (executor.tell_ended()) {
        ++done;
        job->session().wake_leader();
      }
      tell_disagreement(*job, executor);
    }
    if (job->is_leader()) done += end_rounds(*job);
    if (done != 0) watch_.record_work(*job);
    worked += done;
  }
  return worked;
}

unsigned Engine::end_rounds(EngineJob& job) {
  const std::optional<std::uint32_t> differing = job.session().hub()->board().disagreement();
  if (differing.has_value() && !job.hub_disagreement_told) {
    job.hub_disagreement_told =
        report(job, {.kind = EngineEvent::Kind::hub_disagreement, .hub_key = *differing});
  }
  const Session::EndedPushes ended = job.session().end_pushes();
  counters_.hub_rounds += ended.rounds;
  retries_ = retries_ || ended.held_up;
  return ended.rounds;
}

void Engine::tell_disagreement(EngineJob& job, HubExecutor& executor) {
  const std::optional<std::uint32_t> key = executor.disagreement();
  if (key.has_value() &&
      report(job, {.kind = EngineEvent::Kind::hub_disagreement, .hub_key = *key})) {
    executor.set_told();
  }
}

bool Engine::any_active_hub() const {
  return std::any_of(with_hubs_.begin(), with_hubs_.end(),
                     [](EngineJob* job) { return job->moves() && job->hub()->active(); });
}

}  // namespace gradcube::dataplane
