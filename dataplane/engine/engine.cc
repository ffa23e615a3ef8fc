#include "dataplane/engine/engine.h"

#include <algorithm>
#include <fmt/format.h>
#include <numeric>
#include <rte_mbuf.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

namespace {

constexpr Nanoseconds kTimerTick = 50'000;  // a fraction of the shortest recovery time

// What the modules below fix on their own, and have to agree on.
static_assert(control::kMaxDimensions <= bcube::kMaxLevels);
static_assert(control::kMaxDimensions < protocol::kMaxHops, "a relay adds a hop to any path");
static_assert(bcube::kMaxLevels <= protocol::kMaxThreads, "a plan has a thread per level");
static_assert(shared::kMaxLanes <= protocol::kMaxLanes);
static_assert(control::kMaxSteps <= protocol::kMaxSteps);
static_assert(bcube::kMaxServers - 1 == UINT16_MAX, "server numbers have 16 bits on the wire");
static_assert(bcube::kMaxRadix - 1 == UINT8_MAX, "digits have 8 bits on the wire");
static_assert(protocol::SendWindow::kWindow == protocol::ReceiveWindow::kWindow);
static_assert(shared::kBufferAlignment % control::kUnitBytes == 0, "segments begin aligned");
static_assert(static_cast<int>(control::Stage::broadcast) ==
              static_cast<int>(protocol::Stage::broadcast));

// What a frame says of the flow that it belongs to.
protocol::TransportHeader header_of(const Flow& flow) {
  protocol::TransportHeader header;
  header.job = flow.job->id();
  header.stage = flow.stage;
  header.lane = static_cast<std::uint8_t>(flow.user->lane());
  header.thread = static_cast<std::uint8_t>(flow.user->thread());
  header.step = flow.step;
  return header;
}

std::vector<unsigned> port_per_level(std::size_t levels) {
  std::vector<unsigned> ports(levels);
  std::iota(ports.begin(), ports.end(), 0U);
  return ports;
}

// Each segment within a flow's window may be on its way twice: as it was first sent, and sent
// again.
void require_countable_references(const EngineSettings& settings, std::size_t flows) {
  const std::uint64_t references = std::uint64_t{flows} * settings.window * 2;
  if (references <= EngineJob::kMostReferences) return;
  throw control::SetupError(fmt::format(
      "the job could have {} packets on their way from one engine of a server ({} flows with a "
      "window of {} segments, each sent twice), and DPDK can count {}; use fewer lanes, or a "
      "topology with fewer servers under one switch",
      references, flows, settings.window, EngineJob::kMostReferences));
}

}  // namespace

Engine::Engine(const EngineSettings& settings, const bcube::AddressSpace& space,
               std::vector<Port*> ports, PacketPool& packets, EventSink& events)
    : settings_(settings),
      neighbours_(space, settings.server, port_per_level(ports.size())),
      packets_(packets),
      events_(events),
      timers_(0, kTimerTick) {
  const protocol::CreditSettings credit{
      settings.credit_budget,
      static_cast<std::uint32_t>(settings.segment_bytes + protocol::kSegmentHeaderBytes),
      settings.window};
  for (Port* port : ports) ports_.push_back(std::make_unique<PortQueue>(*port, credit));
}

Engine::~Engine() {
  while (!attached_.empty()) detach(attached_.back()->id());
}

unsigned Engine::poll(Nanoseconds now) {
  now_ = now;
  unsigned moved = 0;
  for (const auto& port : ports_) moved += receive(*port);
  if (attached_.empty()) return moved;
  moved += take_requests();
  run_timers();
  for (const auto& port : ports_) port->grant_credit(now_);
  for (const auto& port : ports_) moved += transmit(*port);
  finish_collectives();
  return moved;
}

bool Engine::busy() const {
  return !working_.empty() ||
         std::any_of(
             completing_.begin(), completing_.end(),
             [](const EngineJob* job) { return job->state != EngineJob::State::gathering; }) ||
         std::any_of(ports_.begin(), ports_.end(),
                     [](const auto& port) { return port->any_answers(); });
}

Nanoseconds Engine::next_event() const {
  if (!busy()) return kNever;
  Nanoseconds next = timers_.next_expiry();
  for (const auto& port : ports_) {
    port->answers.for_each_awake([&next](const Flow& flow) {
      next = std::min(next, flow.receive.acknowledgement_deadline());
      return FlowRotation::Visit::later;
    });
  }
  return next;
}

void Engine::prepare_wait() {
  for (EngineJob* job : attached_) {
    if (job->is_leader()) job->session().set_asleep(true);
  }
}

void Engine::finish_wait() {
  for (EngineJob* job : attached_) {
    if (!job->is_leader()) continue;
    job->session().set_asleep(false);
    job->session().drain_doorbell();
  }
}

unsigned Engine::take_requests() {
  unsigned taken = 0;
  for (EngineJob* job : attached_) {
    if (job->state == EngineJob::State::frozen) continue;
    if (job->is_leader()) taken += take_submissions(*job);
    if (job->state == EngineJob::State::running && job->seen != job->session().published()) {
      taken += begin_published(*job);
    }
  }
  return taken;
}

unsigned Engine::take_submissions(EngineJob& job) {
  unsigned taken = 0;
  Session::Take last = job.session().take();
  for (; last == Session::Take::taken; last = job.session().take()) ++taken;
  if (last == Session::Take::violation) report(job, {.kind = EngineEvent::Kind::violation});
  if (taken == 0) return 0;
  job.session().announce_published();
  if (std::find(completing_.begin(), completing_.end(), &job) == completing_.end()) {
    completing_.push_back(&job);
  }
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

void Engine::finish_collectives() {
  std::erase_if(working_, [this](PlanExecutor* executor) {
    EngineJob& job = executor->job();
    if (job.state != EngineJob::State::running) return false;
    executor->finish_completed(now_);
    report_failures(job, *executor);
    return !executor->active();
  });
  std::erase_if(completing_, [this](EngineJob* job) {
    if (job->state != EngineJob::State::frozen) complete(*job);
    return !job->session().anything_in_flight();
  });
}

void Engine::complete(EngineJob& job) {
  Session& session = job.session();
  for (unsigned lane = 0; lane < session.lanes(); ++lane) {
    const std::uint64_t cut = job.cut.through[lane];
    if (cut > session.completed(lane)) {
      session.complete_through(lane, std::min(session.published(lane), cut), job.cut.code,
                               job.cut.notice);
    }
    const std::uint64_t finished = session.finished_by_all(lane);
    const std::uint64_t completed = session.completed(lane);
    if (finished > cut && finished > completed) {
      counters_.collectives += finished - completed;
      session.complete_through(lane, finished, 0);
    }
  }
}

void Engine::report_failures(EngineJob& job, const PlanExecutor& executor) {
  if (executor.disagreement().has_value()) {
    report(job,
           {.kind = EngineEvent::Kind::disagreement, .disagreement = *executor.disagreement()});
  }
  if (executor.overflow().has_value()) {
    report(job, {.kind = EngineEvent::Kind::overflow, .overflow = *executor.overflow()});
  }
}

void Engine::report(EngineJob& job, EngineEvent event) {
  if (job.reported) return;
  event.job = job.id();
  event.epoch = job.epoch;
  event.server = settings_.server;
  job.reported = events_.report(event);
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

std::unique_ptr<EngineJob> Engine::prepare(protocol::JobId id, Session& session,
                                           const LanePlans& lanes, std::uint32_t weight,
                                           const aggregation::Kernels& kernels) const {
  const auto runs_here = [this](unsigned thread) {
    return std::find(settings_.threads.begin(), settings_.threads.end(),
                     thread % settings_.all_threads) != settings_.threads.end();
  };
  auto job = std::make_unique<EngineJob>(id, session, lanes, weight, runs_here(0));
  std::size_t flows = 0;
  for (unsigned lane = 0; lane < lanes.size(); ++lane) {
    const control::Plan& plan = *lanes[lane].plan;
    const control::Rank rank = plan.placement().rank(settings_.server).value();
    const ExecutorContext context{plan, rank, kernels, settings_.segment_bytes, settings_.flows};
    for (unsigned thread = 0; thread < plan.threads(); ++thread) {
      if (!runs_here(thread)) continue;
      const control::ThreadSchedule schedule(plan, rank, thread);
      if (!control::CollectiveLayout::positions_fit(schedule, session.region().bytes(),
                                                    settings_.segment_bytes)) {
        throw control::SetupError(fmt::format(
            "a session with {} bytes of memory: a buffer of that size has more than 2^32 segments "
            "of {} bytes in a stream; ask for a smaller heap (GRADCUBE_HEAP)",
            session.region().bytes(), settings_.segment_bytes));
      }
      flows += job->executors().emplace_back(context, lane, thread, *job).flows().size();
    }
  }
  require_countable_references(settings_, flows);
  return job;
}

EngineJob* Engine::find_job(protocol::JobId id) const {
  const auto found = std::find_if(attached_.begin(), attached_.end(),
                                  [id](const EngineJob* job) { return job->id() == id; });
  return found == attached_.end() ? nullptr : *found;
}

void Engine::attach(EngineJob& job) {
  attached_.push_back(&job);
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) {
      flows_.add(FlowTable::key(header_of(flow), flow.peer), flow);
    }
  }
  add_flows(job);
}

void Engine::start(protocol::JobId id, std::uint16_t epoch, const RankOrder& ranks) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->epoch = epoch;
  job->rank_order = ranks;
  job->state = EngineJob::State::running;
  job->reported = false;
  for (PlanExecutor& executor : job->executors()) {
    for (Flow& flow : executor.flows()) flow.frame.emplace(frame_template_of(flow, *job));
  }
}

protocol::FrameTemplate Engine::frame_template_of(const Flow& flow, const EngineJob& job) const {
  const bcube::Neighbour& peer = *neighbours_.find(flow.first_hop.level, flow.first_hop.digit);
  const bcube::LinkAddress own =
      bcube::embedded_link_address(flow.first_hop.level, settings_.server);
  protocol::RoutingHeader route;
  route.source = static_cast<std::uint16_t>(settings_.server);
  route.destination = static_cast<std::uint16_t>(flow.peer);
  route.hop_count = 1;
  route.hops[0] = flow.first_hop;
  protocol::TransportHeader constant = header_of(flow);
  constant.epoch = job.epoch;
  return {{own.mac, peer.address.mac, own.ip, peer.address.ip}, route, constant};
}

void Engine::freeze(protocol::JobId id) {
  if (EngineJob* job = find_job(id)) job->state = EngineJob::State::frozen;
}

void Engine::reset(protocol::JobId id, const LaneCut& cut) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->cut = cut;
  clear(*job, cut);
  add_flows(*job);
  // What fails has to be completed, whether or not more comes.
  if (job->is_leader() &&
      std::find(completing_.begin(), completing_.end(), job) == completing_.end()) {
    completing_.push_back(job);
  }
}

void Engine::detach(protocol::JobId id) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  clear(*job, {});
  flows_.remove_all_of(id);
  std::erase(attached_, job);
  std::erase(completing_, job);
}

// Forgets all that is in flight. The flows leave their ports; the flow table keeps them.
void Engine::clear(EngineJob& job, const LaneCut& cut) {
  for (const auto& port : ports_) port->remove_all_of(job);
  std::erase_if(working_, [&job](PlanExecutor* executor) { return &executor->job() == &job; });
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) timers_.cancel(flow.timer);
    executor.reset(cut.through[executor.lane()]);
  }
  job.seen = 0;
}

// The flows of other jobs keep their credit, and what their senders have asked for.
void Engine::add_flows(EngineJob& job) {
  for (PlanExecutor& executor : job.executors()) {
    const unsigned lane = executor.lane();
    const LanePlan& runs = job.lanes()[lane];
    for (Flow& flow : executor.flows()) {
      const unsigned step =
          flow.stage == protocol::Stage::aggregation ? flow.step : runs.plan->steps();
      ports_[flow.port]->add(job, {job.weight(), lane, runs.priority, step}, flow);
    }
  }
}

}  // namespace gradcube::dataplane
