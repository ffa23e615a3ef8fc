#include "dataplane/engine/engine.h"

#include <algorithm>
#include <cassert>

#include "control/plan/algorithms/cut_threads.h"
#include "dataplane/engine/flow_users.h"
#include "dataplane/host/attempt.h"

namespace gradcube::dataplane {

namespace {

bool job_moves(const Flow& flow) { return flow.job->moves(); }

constexpr Nanoseconds kTimerTick = 50'000;  // a fraction of the shortest recovery time

constexpr Nanoseconds kStarvedLook = 50'000;

// Of one job's submissions, in an iteration.
constexpr unsigned kTakenAtOnce = 256;

// What the modules below fix on their own, and have to agree on.
static_assert(Port::kBurst <= HandOver::kBurst);
static_assert(control::kMaxDimensions <= bcube::kMaxLevels);
static_assert(control::kMaxDimensions < protocol::kMaxHops, "a relay adds a hop to any path");
static_assert(bcube::kMaxLevels <= protocol::kMaxHops, "every route fits into a frame");
static_assert(control::PlanChoice::kMostChosen *
                      std::max(2 * bcube::kMaxLevels, control::kMostCutThreads) <
                  protocol::kFirstHubThread,
              "a plan has a thread for each port, or is cut; one more has one; hubs and mail have "
              "others");
static_assert(shared::kMaxLanes <= protocol::kMaxLanes);
static_assert(control::kMaxSteps <= protocol::kMaxFlowSteps);
static_assert(bcube::kMaxServers - 1 == UINT16_MAX, "server numbers have 16 bits on the wire");
static_assert(bcube::kMaxRadix - 1 == UINT8_MAX, "digits have 8 bits on the wire");
static_assert(protocol::SendWindow::kWindow == protocol::ReceiveWindow::kWindow);
static_assert(shared::kBufferAlignment % control::kUnitBytes == 0,
              "the units of a buffer begin aligned");
static_assert(static_cast<int>(control::Stage::broadcast) ==
              static_cast<int>(protocol::Stage::broadcast));

bool has_untold_progress(EngineJob* job) {
  return job->state == EngineJob::State::held && job->is_leader() &&
         job->session().completions() != job->progress_told;
}

}  // namespace

Engine::Engine(const EngineSettings& settings, const bcube::AddressSpace& space,
               const std::vector<EnginePort>& ports, const EnginePools& pools, EventSink& events)
    : settings_(settings),
      neighbours_(space, settings.server),
      pools_(pools),
      events_(events),
      timers_(0, kTimerTick),
      own_links_(space),
      links_(settings.links == nullptr ? own_links_ : *settings.links),
      keeper_(settings.greetings, neighbours_, links_),
      paths_(neighbours_, links_),
      chooser_({settings.probing_interval, settings.probing_seed}, neighbours_, paths_, loads_,
               watch_) {
  if (settings.keys != nullptr) sent_check_ = demanded_check_ = FrameCheck::mac;
  assert(ports.size() == space.ports(settings.server));
  for (unsigned port = 0; port < ports.size(); ++port) {
    ports_.push_back(
        std::make_unique<PortQueue>(port, *ports[port].port, *ports[port].credit, settings.queue));
    loads_.add(*ports[port].port, settings.bits_per_second.empty()
                                      ? 0
                                      : settings.bits_per_second.at(space.level_of_port(port)));
  }
  for (unsigned level = 0; level < space.levels(); ++level) {
    neighbour_counters_.emplace_back(space.hop_digits(level));
    unasked_.emplace_back(space.hop_digits(level));
  }
  links_.add(neighbour_counters_);
  assert(settings.hand_over == nullptr || settings.hand_over->engines() == settings.engines);
  assert(settings.hand_over == nullptr || settings.queue < settings.engines);
}

Engine::~Engine() {
  while (!attached_.empty()) detach(attached_.back()->id());
}

unsigned Engine::poll(Nanoseconds now) {
  now_ = now;
  retries_ = false;
  loads_.sample(now_);
  unsigned moved = 0;
  for (const auto& port : ports_) moved += receive(*port, settings_.queue);
  if (settings_.hand_over != nullptr) moved += receive_handed();
  keeper_.keep(now_);
  if (paths_.have_changed(now_)) {
    if (!attempt([this] { reroute(); })) paths_.ask_again();
    for (Doorbell* sibling : settings_.siblings) sibling->ring();
  }
  attempt([this] { keep_paths(); });
  if (attached_.empty()) return owes_others() ? moved + transmit_all() : moved;
  watch_.look(now);
  moved += take_requests();
  moved += work_hubs();
  run_timers();
  grant_credit();
  moved += transmit_all();
  moved += finish_collectives();
  report_progress();
  return moved;
}

unsigned Engine::poll_urgent(Nanoseconds now) {
  now_ = now;
  unsigned moved = 0;
  for (const auto& port : ports_) {
    if (port->has_lanes) moved += receive(*port, port->express.queue);
  }
  moved += take_requests();
  if (moved == 0) return 0;
  grant_credit();
  for (const auto& port : ports_) moved += transmit(*port, 0);
  return moved + finish_collectives();
}

void Engine::grant_credit() {
  const auto ask = [](const Flow& flow, const auto& call) { ask_user(flow, call); };
  for (const auto& port : ports_) port->grant_credit(now_, ask);
}

unsigned Engine::transmit_all() {
  unsigned filled = 0;
  for (const auto& port : ports_) filled += transmit(*port, port->port->per_iteration());
  return filled;
}

bool Engine::owes_others() const {
  return std::any_of(ports_.begin(), ports_.end(),
                     [this](const auto& port) { return owes_others(*port); });
}

bool Engine::busy() const {
  const auto moves = [](const PlanExecutor* executor) { return executor->job().moves(); };
  const auto completes = [](const EngineJob* job) { return job->moves(); };
  return owes_others() || any_active_hub() ||
         std::any_of(working_.begin(), working_.end(), moves) ||
         std::any_of(completing_.begin(), completing_.end(), completes) ||
         std::any_of(watch_.watched().begin(), watch_.watched().end(), has_untold_progress) ||
         std::any_of(ports_.begin(), ports_.end(), [](const auto& port) {
           return port->any_answers(job_moves) || port->credit.starved();
         });
}

Nanoseconds Engine::next_event() const {
  if (retries_) return now_;
  // Timers also where nothing is busy: what a job owes others may outlast what its trainers asked.
  Nanoseconds next = std::min({timers_.next_expiry(), keeper_.next_greeting(), paths_.next_change(),
                               chooser_.next_event(busy())});
  for (const auto& port : ports_) {
    // Where a lane is full, who makes room wakes the poller.
    const auto has_room = [&](const PortQueue::Burst& lane) {
      return port->port->transmit_room(lane.queue) != 0;
    };
    const bool plain = has_room(port->plain);
    const bool express = port->has_lanes ? has_room(port->express) : plain;
    if (plain && owes_others(*port)) return now_;
    if (plain || express) {
      next = std::min(next, port->next_answer([plain, express](const Flow& flow) {
        return job_moves(flow) && (flow.may_overtake() ? express : plain);
      }));
    }
    // Another engine may give back credit at any time.
    if (port->credit.starved()) next = std::min(next, now_ + kStarvedLook);
  }
  // What is due already may lie as far back as numbers reach; callers count from now.
  return std::max<Nanoseconds>(next, 0);
}

void Engine::prepare_wait() { watch_.prepare_wait(); }

void Engine::finish_wait() { watch_.finish_wait(); }

unsigned Engine::take_requests() {
  unsigned all_taken = 0;
  for (EngineJob* job : watch_.watched()) {
    unsigned taken = 0;
    if (job->is_leader() && job->state == EngineJob::State::running) taken = take_submissions(*job);
    if (job->moves() && job->seen != job->session().published()) taken += begin_published(*job);
    if (job->moves() && job->mailroom() != nullptr) taken += job->mailroom()->work();
    if (taken != 0) watch_.record_work(*job);
    all_taken += taken;
  }
  return all_taken;
}

unsigned Engine::take_submissions(EngineJob& job) {
  unsigned taken = 0;
  Session::Take last = job.session().take();
  for (; last == Session::Take::taken; last = job.session().take()) {
    if (++taken == kTakenAtOnce) break;
  }
  if (last == Session::Take::violation && !job.violation_told) {
    job.violation_told = report(job, {.kind = EngineEvent::Kind::violation});
  }
  if (taken == 0) return 0;
  job.session().wake_pollers();
  await_completions(job);
  return taken;
}

unsigned Engine::begin_published(EngineJob& job) {
  unsigned begun = 0;
  bool all = true;
  const std::uint64_t published = job.session().published();
  for (PlanExecutor& executor : job.executors()) {
    const bool worked = executor.active();
    begun += executor.begin_published() ? 1 : 0;
    if (!worked && executor.active()) working_.push_back(&executor);
    all = all && !executor.has_more();
  }
  if (all) job.seen = published;
  return begun;
}

unsigned Engine::finish_collectives() {
  unsigned finished = 0;
  std::erase_if(working_, [this, &finished](PlanExecutor* executor) {
    if (!executor->job().moves()) return false;
    finished += executor->finish_completed(now_) ? 1 : 0;
    report_failures(*executor);
    return !executor->active();
  });
  // A collective of the faulted job may have been computed from zeros. Nobody announces that this
  // is settled.
  if (GuardedMemory::pending()) {
    retries_ = retries_ || !completing_.empty();
    return finished;
  }
  std::erase_if(completing_, [this, &finished](EngineJob* job) {
    if (job->state != EngineJob::State::halted) finished += complete(*job);
    return !job->session().anything_in_flight();
  });
  return finished;
}

// Returns how many it completed.
unsigned Engine::complete(EngineJob& job) {
  Session& session = job.session();
  const std::uint64_t before = session.completions();
  if (job.mailroom() != nullptr) job.mailroom()->publish_ends();
  for (unsigned lane = 0; lane < session.lanes(); ++lane) {
    const CutsOfLane& cuts = job.cuts[lane];
    if (cuts.through() > session.completed(lane)) session.complete_through(lane, cuts);
    const std::uint64_t finished = session.finished_by_all(lane);
    const std::uint64_t completed = session.completed(lane);
    // Another engine may have finished on zeros since this one looked.
    if (GuardedMemory::pending()) {
      retries_ = true;
      break;
    }
    if (finished > cuts.through() && finished > completed) {
      counters_.collectives += finished - completed;
      session.complete_through(lane, finished, 0);
    }
  }
  return static_cast<unsigned>(session.completions() - before);
}

void Engine::report_failures(PlanExecutor& executor) {
  PlanExecutor::Told& told = executor.told();
  const auto& disagreement = executor.disagreement();
  if (disagreement.has_value() && disagreement->collective != told.disagreement &&
      report(executor.job(),
             {.kind = EngineEvent::Kind::disagreement, .disagreement = *disagreement})) {
    told.disagreement = disagreement->collective;
  }
  const auto& overflow = executor.overflow();
  if (overflow.has_value() && overflow->collective != told.overflow &&
      report(executor.job(), {.kind = EngineEvent::Kind::overflow, .overflow = *overflow})) {
    told.overflow = overflow->collective;
  }
}

void Engine::report_progress() {
  for (EngineJob* job : watch_.watched()) {
    if (has_untold_progress(job) && report(*job, {.kind = EngineEvent::Kind::progress})) {
      job->progress_told = job->session().completions();
    }
  }
}

bool Engine::report(const EngineJob& job, EngineEvent event) {
  event.job = job.id();
  event.epoch = job.epoch;
  event.server = settings_.server;
  const bool taken = events_.report(event);
  retries_ = retries_ || !taken;
  return taken;
}

NeighbourNumbers Engine::neighbour(bcube::Hop hop) const {
  if (neighbours_.find(hop.level, hop.digit) == nullptr) return {};
  return neighbour_counters_[hop.level][hop.digit].read();
}

void Engine::post(unsigned port, rte_mbuf* frame) {
  if (ports_[port]->relayed.put(frame)) return;
  counters_.drop(DropReason::relay_full);
  rte_pktmbuf_free(frame);
}

void Engine::run_timers() {
  timers_.advance(now_, [this](protocol::TimerEntry& entry) {
    Flow& flow = *static_cast<FlowTimer&>(entry).flow;
    if (flow.send.deadline() <= now_) {
      flow.send.on_timer(now_);
      wake_resend(flow);
      wake_answer(flow);
    }
    arm_timer(flow);
  });
}

EngineJob* Engine::find_job(protocol::JobId id) const {
  const auto found = std::find_if(attached_.begin(), attached_.end(),
                                  [id](const EngineJob* job) { return job->id() == id; });
  return found == attached_.end() ? nullptr : *found;
}

EngineJob* Engine::wake_job(protocol::JobId id) {
  EngineJob* job = find_job(id);
  if (job != nullptr) watch_.wake(*job);
  return job;
}

}  // namespace gradcube::dataplane
