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
static_assert(bcube::kMaxServers - 1 == UINT16_MAX, "server numbers have 16 bits on the wire");
static_assert(bcube::kMaxRadix - 1 == UINT8_MAX, "digits have 8 bits on the wire");
static_assert(protocol::SendWindow::kWindow == protocol::ReceiveWindow::kWindow);
static_assert(shared::kBufferAlignment % control::kUnitBytes == 0, "segments begin aligned");
static_assert(static_cast<int>(control::Stage::broadcast) ==
              static_cast<int>(protocol::Stage::broadcast));

std::vector<unsigned> port_per_level(std::size_t levels) {
  std::vector<unsigned> ports(levels);
  std::iota(ports.begin(), ports.end(), 0U);
  return ports;
}

// Each segment within a flow's window may be on its way twice: as it was first sent, and sent
// again.
void require_countable_references(const EngineSettings& settings, const control::Plan& plan) {
  std::uint64_t flows = 0;
  for (const unsigned thread : settings.threads) {
    for (unsigned w = 0; w < plan.steps(thread); ++w) flows += 2 * (plan.radix(thread, w) - 1);
  }
  const std::uint64_t references = flows * settings.window * 2;
  if (references <= EngineJob::kMostReferences) return;
  throw control::SetupError(fmt::format(
      "topology {}: a job could have {} packets on their way from one engine of a server ({} flows "
      "with a window of {} segments, each sent twice), and DPDK can count {}; use a topology with "
      "fewer servers under one switch",
      plan.topology().spec(), references, flows, settings.window, EngineJob::kMostReferences));
}

}  // namespace

Engine::Engine(const EngineSettings& settings, const control::Plan& plan, std::vector<Port*> ports,
               PacketPool& packets, EventSink& events)
    : settings_(settings),
      plan_(plan),
      neighbours_(plan.space(), settings.server, port_per_level(ports.size())),
      packets_(packets),
      events_(events),
      timers_(0, kTimerTick) {
  require_countable_references(settings, plan);
  const protocol::CreditSettings credit{
      settings.credit_budget,
      static_cast<std::uint32_t>(settings.segment_bytes + protocol::kSegmentHeaderBytes),
      settings.window};
  for (Port* port : ports) ports_.emplace_back(*port, plan.steps(), credit);
}

Engine::~Engine() {
  while (!attached_.empty()) detach(attached_.back()->id());
}

unsigned Engine::poll(Nanoseconds now) {
  now_ = now;
  unsigned moved = 0;
  for (unsigned level = 0; level < ports_.size(); ++level) moved += receive(level);
  if (attached_.empty()) return moved;
  moved += take_requests();
  run_timers();
  update_credit();
  for (unsigned level = 0; level < ports_.size(); ++level) moved += transmit(level);
  finish_collectives();
  return moved;
}

bool Engine::busy() const {
  for (EngineJob* job : attached_) {
    if (job->state == EngineJob::State::gathering) continue;
    if (job->is_leader() && job->session().published() != job->session().completed()) return true;
    for (PlanExecutor& executor : job->executors()) {
      if (executor.active()) return true;
      for (const Flow& flow : executor.flows()) {
        if (flow.receive.acknowledgement_deadline() != protocol::kNever) return true;
      }
    }
  }
  return false;
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
    if (job->state != EngineJob::State::running) continue;
    for (PlanExecutor& executor : job->executors()) taken += executor.begin_published() ? 1 : 0;
  }
  return taken;
}

unsigned Engine::take_submissions(EngineJob& job) {
  unsigned taken = 0;
  Session::Take last = job.session().take();
  for (; last == Session::Take::taken; last = job.session().take()) ++taken;
  if (last == Session::Take::violation) report(job, {.kind = EngineEvent::Kind::violation});
  if (taken != 0) job.session().announce_published();
  return taken;
}

void Engine::finish_collectives() {
  for (EngineJob* job : attached_) {
    if (job->state == EngineJob::State::running) {
      for (PlanExecutor& executor : job->executors()) {
        executor.finish_completed();
        report_failures(*job, executor);
      }
    }
    if (job->is_leader() && job->state != EngineJob::State::frozen) complete(*job);
  }
}

void Engine::complete(EngineJob& job) {
  Session& session = job.session();
  const std::uint64_t before = session.completed();
  if (job.fails_through > before) {
    session.complete_through(std::min(session.published(), job.fails_through), job.failure_code);
  }
  const std::uint64_t finished = session.finished_by_all();
  if (finished > job.fails_through && finished > session.completed()) {
    counters_.collectives += finished - session.completed();
    session.complete_through(finished, 0);
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
    if (flow.send.deadline() <= now_) flow.send.on_timer(now_);
    arm_timer(flow);
  });
}

std::unique_ptr<EngineJob> Engine::prepare(std::uint32_t id, Session& session,
                                           const aggregation::Kernels& kernels) const {
  const bool leader =
      std::find(settings_.threads.begin(), settings_.threads.end(), 0U) != settings_.threads.end();
  auto job = std::make_unique<EngineJob>(id, session, leader);
  const ExecutorContext context{plan_, settings_.server, kernels, settings_.segment_bytes,
                                settings_.flows};
  const control::Rank rank = plan_.placement().rank(settings_.server).value();
  for (const unsigned thread : settings_.threads) {
    const control::ThreadSchedule schedule(plan_, rank, thread);
    if (!control::CollectiveLayout::positions_fit(schedule, session.region().bytes(),
                                                  settings_.segment_bytes)) {
      throw control::SetupError(fmt::format(
          "a session with {} bytes of memory: a buffer of that size has more than 2^32 segments of "
          "{} bytes in a stream; ask for a smaller heap (GRADCUBE_HEAP)",
          session.region().bytes(), settings_.segment_bytes));
    }
    job->executors().emplace_back(context, thread, *job);
  }
  return job;
}

void Engine::attach(EngineJob& job) {
  jobs_[protocol::job_index(job.id())] = &job;
  attached_.push_back(&job);
  add_flows(job);
}

void Engine::start(std::uint32_t id, std::uint16_t epoch) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->epoch = epoch;
  job->state = EngineJob::State::running;
  job->reported = false;
  for (PlanExecutor& executor : job->executors()) {
    for (Flow& flow : executor.flows()) flow.frame.emplace(frame_template_of(flow, *job));
  }
}

protocol::FrameTemplate Engine::frame_template_of(const Flow& flow, const EngineJob& job) const {
  const bcube::Neighbour& peer =
      *neighbours_.find(flow.level, plan_.space().digit(flow.peer, flow.level));
  const bcube::LinkAddress own = bcube::embedded_link_address(flow.level, settings_.server);
  protocol::RoutingHeader route;
  route.source = static_cast<std::uint16_t>(settings_.server);
  route.destination = static_cast<std::uint16_t>(flow.peer);
  route.hop_count = 1;
  route.hops[0] = {flow.level, static_cast<std::uint8_t>(peer.digit)};
  protocol::TransportHeader constant;
  constant.job = job.id();
  constant.epoch = job.epoch;
  constant.stage = flow.stage;
  constant.thread = static_cast<std::uint8_t>(flow.executor->thread());
  return {{own.mac, peer.address.mac, own.ip, peer.address.ip}, route, constant};
}

void Engine::freeze(std::uint32_t id) {
  if (EngineJob* job = find_job(id)) job->state = EngineJob::State::frozen;
}

void Engine::reset(std::uint32_t id, std::uint64_t fails_through, std::int32_t code) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->fails_through = fails_through;
  job->failure_code = code;
  clear(*job, fails_through);
  add_flows(*job);
}

void Engine::detach(std::uint32_t id) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  clear(*job, 0);
  jobs_[protocol::job_index(id)] = nullptr;
  std::erase(attached_, job);
}

// Forgets all that is in flight, and the job's flows with it.
void Engine::clear(EngineJob& job, std::uint64_t last_failed) {
  remove_flows(job);
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) timers_.cancel(flow.timer);
    executor.reset(last_failed);
  }
}

// The flows of other jobs keep their credit, and what their senders have asked for.
void Engine::add_flows(EngineJob& job) {
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) {
      PortQueue& out = ports_[flow.level];
      out.all.flows.push_back(&flow);
      const unsigned rank = flow.stage == protocol::Stage::aggregation ? flow.step : plan_.steps();
      out.classes[rank].flows.push_back(&flow);
      flow.credit = out.credit.add(&flow.receive);
    }
  }
}

void Engine::remove_flows(EngineJob& job) {
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) ports_[flow.level].credit.remove(flow.credit);
  }
  for (PortQueue& out : ports_) {
    out.all.remove_all_of(job);
    for (RoundRobin& flows : out.classes) flows.remove_all_of(job);
  }
}

void Engine::RoundRobin::remove_all_of(const EngineJob& job) {
  const auto of_job = [&job](const Flow* flow) { return flow->job == &job; };
  const auto served = flows.begin() + static_cast<std::ptrdiff_t>(next);
  next -= static_cast<std::size_t>(std::count_if(flows.begin(), served, of_job));
  std::erase_if(flows, of_job);
  if (next >= flows.size()) next = 0;
}

}  // namespace gradcube::dataplane
