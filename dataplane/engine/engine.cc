#include "dataplane/engine/engine.h"

#include <algorithm>
#include <numeric>
#include <rte_mbuf.h>

namespace gradcube::dataplane {

namespace {

constexpr std::int64_t kTimerTick = 50'000;  // ns: a fraction of the shortest recovery time

std::vector<unsigned> port_per_level(std::size_t levels) {
  std::vector<unsigned> ports(levels);
  std::iota(ports.begin(), ports.end(), 0U);
  return ports;
}

}  // namespace

std::string_view name(DropReason reason) {
  constexpr std::array<std::string_view, kDropReasons> kNames = {
      "not_for_this_server", "unknown_job",     "stale_epoch",        "job_not_running",
      "foreign_thread",      "not_a_neighbour", "scattered_payload",  "unexpected_result",
      "outside_window",      "disagreement",    "bad_acknowledgement"};
  return kNames[static_cast<std::size_t>(reason)];
}

Engine::Engine(const EngineSettings& settings, const control::Plan& plan, std::vector<Port*> ports,
               rte_mempool* packets, EventSink& events)
    : settings_(settings),
      plan_(plan),
      neighbours_(plan.space(), settings.server, port_per_level(ports.size())),
      packets_(packets),
      events_(events),
      ports_(ports.size()),
      timers_(0, kTimerTick) {
  for (std::size_t level = 0; level < ports.size(); ++level) {
    ports_[level].port = ports[level];
  }
  collect_flows();
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
  if (last == Session::Take::violation) report(job, EngineEvent::Kind::violation, {});
  if (taken != 0) job.session().announce_published();
  return taken;
}

void Engine::finish_collectives() {
  for (EngineJob* job : attached_) {
    if (job->state == EngineJob::State::running) {
      for (PlanExecutor& executor : job->executors()) {
        executor.finish_completed();
        if (executor.disagreement().has_value()) {
          report(*job, EngineEvent::Kind::disagreement, *executor.disagreement());
        }
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

void Engine::report(EngineJob& job, EngineEvent::Kind kind, const Disagreement& disagreement) {
  if (job.reported) return;
  job.reported = events_.report({kind, job.id(), job.epoch, settings_.server, disagreement});
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
  for (unsigned thread : settings_.threads) {
    job->executors().emplace_back(plan_, settings_.server, thread, *job, session, kernels,
                                  settings_.segment_bytes, settings_.flows);
  }
  return job;
}

void Engine::attach(EngineJob& job) {
  jobs_[protocol::job_index(job.id())] = &job;
  attached_.push_back(&job);
  collect_flows();
}

void Engine::start(std::uint32_t id, std::uint16_t epoch) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->epoch = epoch;
  job->state = EngineJob::State::running;
  job->reported = false;
  for (PlanExecutor& executor : job->executors()) {
    for (Flow& flow : executor.flows()) {
      const bcube::Neighbour& peer =
          *neighbours_.find(flow.level, plan_.space().digit(flow.peer, flow.level));
      const bcube::LinkAddress own = bcube::embedded_link_address(flow.level, settings_.server);
      const protocol::LinkAddresses link{own.mac, peer.address.mac, own.ip, peer.address.ip};
      protocol::RoutingHeader route;
      route.source = static_cast<std::uint16_t>(settings_.server);
      route.destination = static_cast<std::uint16_t>(flow.peer);
      route.hop_count = 1;
      route.hops[0] = {flow.level, static_cast<std::uint8_t>(peer.digit)};
      protocol::TransportHeader constant;
      constant.job = id;
      constant.epoch = epoch;
      constant.stage = flow.stage;
      constant.thread = static_cast<std::uint8_t>(executor.thread());
      flow.frame.emplace(link, route, constant);
    }
  }
}

void Engine::freeze(std::uint32_t id) {
  if (EngineJob* job = find_job(id)) job->state = EngineJob::State::frozen;
}

void Engine::reset(std::uint32_t id, std::uint64_t fails_through, std::int32_t code) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  job->fails_through = fails_through;
  job->failure_code = code;
  for (PlanExecutor& executor : job->executors()) {
    for (Flow& flow : executor.flows()) timers_.cancel(flow.timer);
    executor.reset(fails_through);
  }
  collect_flows();
}

void Engine::detach(std::uint32_t id) {
  EngineJob* job = find_job(id);
  if (job == nullptr) return;
  jobs_[protocol::job_index(id)] = nullptr;
  std::erase(attached_, job);
  for (PlanExecutor& executor : job->executors()) {
    for (Flow& flow : executor.flows()) timers_.cancel(flow.timer);
    executor.reset(0);
  }
  collect_flows();
}

// Rebuilds every link's turns and credit: at attach, reset and detach only, never on the data path.
void Engine::collect_flows() {
  const unsigned steps = plan_.steps();
  for (PortQueue& out : ports_) {
    out.all = {};
    out.classes.assign(steps + 1, {});
    out.credit = std::make_unique<protocol::CreditPool>(protocol::CreditSettings{
        settings_.credit_budget,
        static_cast<std::uint32_t>(settings_.segment_bytes + protocol::kSegmentHeaderBytes),
        settings_.window});
  }
  for (EngineJob* job : attached_) {
    for (PlanExecutor& executor : job->executors()) {
      for (Flow& flow : executor.flows()) {
        PortQueue& out = ports_[flow.level];
        out.all.flows.push_back(&flow);
        const unsigned rank = flow.stage == protocol::Stage::aggregation ? flow.step : steps;
        out.classes[rank].flows.push_back(&flow);
        flow.credit = out.credit->add(&flow.receive, executor.consumed(flow));
      }
    }
  }
}

}  // namespace gradcube::dataplane
