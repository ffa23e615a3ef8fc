// What an engine does of its jobs when the control thread says so: their states, their flows, and
// what is forgotten between epochs.

#include <algorithm>
#include <fmt/format.h>
#include <tuple>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/engine/engine.h"
#include "dataplane/engine/flow_users.h"
#include "dataplane/links/way_back.h"

namespace gradcube::dataplane {

namespace {

// What a frame says of the flow that it belongs to.
protocol::TransportHeader header_of(const Flow& flow) {
  protocol::TransportHeader header;
  header.job = flow.job->id();
  header.stage = flow.stage;
  header.step = flow.step;
  const FlowName name = name_of(flow);
  header.lane = name.lane;
  header.thread = name.thread;
  return header;
}

std::uint64_t key_of(const Flow& flow) { return flow_key(header_of(flow), flow.peer); }

// A buffer as large as the whole memory must have few enough segments in each stream.
void require_numbered_segments(const control::ThreadSchedule& schedule, std::uint64_t region_bytes,
                               std::uint32_t segment_bytes) {
  if (control::CollectiveLayout::positions_fit(schedule, region_bytes, segment_bytes)) return;
  throw control::SetupError(fmt::format(
      "a session with {} bytes of memory: a buffer of that size has more than 2^32 segments "
      "of {} bytes in a stream; ask for a smaller heap (GRADCUBE_HEAP)",
      region_bytes, segment_bytes));
}

}  // namespace

bool Engine::runs(unsigned thread) const {
  return std::find(settings_.threads.begin(), settings_.threads.end(),
                   thread % settings_.engines) != settings_.threads.end();
}

std::uint32_t Engine::check(const LanePlans& lanes, std::uint64_t region_bytes) const {
  std::uint32_t flows = 0;
  for (const LanePlan& lane : lanes) {
    const control::PlanChoice& choice = *lane.choice;
    const control::Rank rank = choice.placement().rank(settings_.server).value();
    for (unsigned thread = 0; thread < choice.threads(); ++thread) {
      if (!runs(thread)) continue;
      const unsigned plan = choice.plan_of_thread(thread);
      const control::ThreadSchedule schedule(choice.plan(plan), rank,
                                             thread - choice.first_thread(plan));
      require_numbered_segments(schedule, region_bytes, settings_.segment_bytes);
      // One to each neighbour of a step in each stage.
      const unsigned stages = schedule.plan_doubles() ? 1 : control::kStages;
      for (unsigned w = 0; w < schedule.steps(); ++w) flows += stages * schedule.step(w).peers;
    }
  }
  // Mail, which needs trainers, needs a window once: no receiver holds any of it, so it all comes
  // back.
  return flows + (runs(0) && !lanes.empty() ? 1 : 0);
}

std::unique_ptr<EngineJob> Engine::prepare(protocol::JobId id, Session& session,
                                           const LanePlans& lanes, std::uint32_t weight,
                                           const aggregation::Kernels& kernels, JobPackets packets,
                                           const control::Secret& secret) const {
  check(lanes, session.region_bytes());
  auto job = std::make_unique<EngineJob>(id, session, lanes, weight, runs(0), std::move(packets));
  if (settings_.keys != nullptr) job->set_keys(secret);
  for (unsigned lane = 0; lane < lanes.size(); ++lane) {
    const control::PlanChoice& choice = *lanes[lane].choice;
    for (unsigned thread = 0; thread < choice.threads(); ++thread) {
      if (!runs(thread)) continue;
      const unsigned plan = choice.plan_of_thread(thread);
      const ExecutorContext context{choice,
                                    plan,
                                    choice.placement().rank(settings_.server).value(),
                                    kernels,
                                    settings_.segment_bytes,
                                    settings_.block_bytes,
                                    job->window(),
                                    settings_.flows};
      job->executors().emplace_back(context, lane, thread - choice.first_thread(plan), *job);
    }
  }
  if (job->is_leader()) lead(session, lanes);
  if (job->is_leader() && !lanes.empty()) {
    job->set_mailroom(std::make_unique<Mailroom>(
        *job, session, job->rank_order, lanes[0].choice->placement(), settings_.server,
        settings_.segment_bytes, job->window(), settings_.flows, settings_.hash_key));
  }
  return job;
}

// The session learns which threads run here: what they run alone ends without the other engines.
void Engine::lead(Session& session, const LanePlans& lanes) const {
  for (unsigned lane = 0; lane < lanes.size(); ++lane) {
    LeaderPart part{lanes[lane].choice, {}, {}};
    const control::PlanChoice& choice = *part.choice;
    for (unsigned plan = 0; plan < choice.plans(); ++plan) {
      const unsigned end = choice.first_thread(plan) + choice.plan(plan).threads();
      bool alone = true;
      for (unsigned thread = choice.first_thread(plan); thread < end; ++thread) {
        part.runs.push_back(runs(thread));
        alone = alone && runs(thread);
      }
      part.runs_alone.push_back(alone);
    }
    session.set_leader_part(lane, std::move(part));
  }
}

void Engine::attach(EngineJob& job, std::uint32_t epoch, const RankOrder& ranks) {
  attached_.push_back(&job);
  make_room_for_work();
  watch_.add(job);
  if (job.is_leader()) job.session().set_attached(true);
  job.rank_order = ranks;
  job.violation_told = false;
  if (job.mailroom() != nullptr) {
    job.mailroom()->set_opener([this](MailChannel& channel) { open_channel(channel); });
  }
  job.for_each_flow([this](Flow& flow) { add_flow(flow); });
  add_flows(job);
  arm(job, epoch);
}

// The engine's iterations need no memory for what they remember of its jobs.
void Engine::make_room_for_work() {
  std::size_t executors = 0;
  for (EngineJob* job : attached_) executors += job->executors().size();
  working_.reserve(executors);
  completing_.reserve(attached_.size());
}

void Engine::add_flow(Flow& flow) {
  flows_.add(key_of(flow), &flow);
  const bcube::Hop first = flow.planned[0];
  flow.payloads = flow.hub == nullptr ? &flow.job->payloads() : &flow.hub->hub().payloads();
  if (JobKeys* keys = flow.job->keys(); keys != nullptr) {
    flow.key = flow.mail == nullptr ? &keys->of_epoch() : &keys->of_mail();
  }
  flow.hub_number = flow.hub == nullptr ? 0 : flow.hub->hub_number();
  flow.neighbour =
      flow.is_neighbours() ? &neighbour_counters_[first.level][first.digit] : &distant_counters_;
  flow.digit_in = static_cast<std::uint8_t>(
      neighbours_.space().digit_back(settings_.server, first.level, first.digit));
}

// With the first mail to or from another server: allocates.
void Engine::open_channel(MailChannel& channel) {
  try {
    for (Flow& flow : channel.flows()) {
      add_flow(flow);
      connect(flow);
    }
  } catch (...) {
    for (Flow& flow : channel.flows()) close(flow);
    throw;
  }
}

// To the ports that it takes.
void Engine::connect(Flow& flow) {
  PortQueue& out = take_route(flow, route_of(flow));
  flow.frame.emplace(frame_template_of(flow));
  const FlowScheduler::Rank rank = rank_of(flow);
  out.add_outgoing(*flow.job, rank, flow);
  ports_[flow.port_in]->add_incoming(flow.job->id(), rank, flow);
}

// Takes it out of everything that it stands in.
void Engine::close(Flow& flow) {
  timers_.cancel(flow.timer);
  if (flow.out != nullptr) flow.out->remove_outgoing(flow);
  if (flow.in != nullptr) flow.in->remove_incoming(flow);
  for (auto& rooms : unasked_) {
    for (UnaskedRoom& room : rooms) {
      room.forget_if([&flow](const Flow& each) { return &each == &flow; });
    }
  }
  flows_.remove(key_of(flow));
}

// Mail goes on over resets.
std::uint16_t Engine::epoch_of(const Flow& flow) {
  return flow.mail == nullptr ? flow.job->epoch : std::uint16_t{0};
}

// The epoch's frames are taken from now on; what has been sent since the flows were made fresh is
// nothing.
void Engine::arm(EngineJob& job, std::uint32_t epoch) {
  job.epoch = static_cast<std::uint16_t>(epoch);
  if (job.keys() != nullptr) job.keys()->set_epoch(epoch);
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) flow.frame.emplace(frame_template_of(flow));
  }
  job.state = EngineJob::State::armed;
}

void Engine::start(protocol::JobId id) {
  EngineJob* job = wake_job(id);
  if (job == nullptr || job->state != EngineJob::State::armed) return;
  job->state = EngineJob::State::running;
  // What was taken before the engines knew the session.
  if (job->is_leader() && job->session().anything_in_flight()) await_completions(*job);
}

void Engine::hold(protocol::JobId id) {
  EngineJob* job = wake_job(id);
  if (job == nullptr || job->state != EngineJob::State::running) return;
  job->state = EngineJob::State::held;
  job->progress_told = job->session().completions();
}

protocol::FrameTemplate Engine::frame_template_of(const Flow& flow) const {
  const bcube::Neighbour& first = *neighbours_.find(flow.route[0].level, flow.route[0].digit);
  protocol::TransportHeader constant = header_of(flow);
  constant.epoch = epoch_of(flow);
  return {link_addresses(first), routing_over(flow.route, flow.peer), constant};
}

void Engine::halt(protocol::JobId id) {
  if (EngineJob* job = wake_job(id)) job->state = EngineJob::State::halted;
}

void Engine::reset(protocol::JobId id, const LaneCuts& cuts, std::uint32_t epoch) {
  EngineJob* job = wake_job(id);
  if (job == nullptr) return;
  job->cuts = cuts;
  detach_hub(*job);
  clear(*job, cuts);
  add_flows(*job);
  arm(*job, epoch);
  // What fails has to be completed, whether or not more comes.
  if (job->is_leader()) await_completions(*job);
}

bool Engine::take_last(protocol::JobId id, unsigned local) {
  EngineJob* job = wake_job(id);
  if (job == nullptr || !job->is_leader() || job->state != EngineJob::State::running) return false;
  Session& session = job->session();
  // Others may go on submitting: a ring full of each at most.
  for (unsigned all = 0; all <= session.trainers() * Session::kMaxInFlight;) {
    const unsigned taken = take_submissions(*job);
    if (taken == 0) break;
    all += taken;
  }
  if (session.violation() != nullptr || session.has_submission(local)) return false;
  session.dismiss(local);
  return true;
}

void Engine::depart(protocol::JobId id, bcube::ServerId server, unsigned local) {
  EngineJob* job = wake_job(id);
  if (job != nullptr && job->mailroom() != nullptr) job->mailroom()->depart(server, local);
}

void Engine::await_completions(EngineJob& job) {
  if (std::find(completing_.begin(), completing_.end(), &job) == completing_.end()) {
    completing_.push_back(&job);
  }
}

void Engine::detach(protocol::JobId id) {
  EngineJob* job = wake_job(id);
  if (job == nullptr) return;
  detach_hub(*job);
  clear(*job, {});
  job->for_each_flow([this](Flow& flow) { close(flow); });
  std::erase(attached_, job);
  watch_.remove(*job);
  if (job->is_leader()) job->session().set_attached(false);
  std::erase(completing_, job);
}

// Forgets all that is in flight. The flows leave their ports; the flow table keeps them.
void Engine::clear(EngineJob& job, const LaneCuts& cuts) {
  for (const auto& port : ports_) port->remove_all_of(job);
  for (auto& rooms : unasked_) {
    for (UnaskedRoom& room : rooms) room.forget_all_of(job);
  }
  std::erase_if(working_, [&job](PlanExecutor* executor) { return &executor->job() == &job; });
  for (PlanExecutor& executor : job.executors()) {
    for (Flow& flow : executor.flows()) timers_.cancel(flow.timer);
    executor.reset(cuts[executor.lane()].through());
  }
  job.seen = 0;
}

std::size_t Engine::unasked_flows() const {
  std::size_t flows = 0;
  for (const auto& rooms : unasked_) {
    for (const UnaskedRoom& room : rooms) flows += room.flows();
  }
  return flows;
}

namespace {

// How many lanes are served before this one.
unsigned place_of(const LanePlans& lanes, unsigned lane) {
  unsigned before = 0;
  for (unsigned other = 0; other < lanes.size(); ++other) {
    const bool same = lanes[other].priority == lanes[lane].priority;
    if (same ? other < lane : lanes[other].priority > lanes[lane].priority) ++before;
  }
  return before;
}

}  // namespace

FlowScheduler::Rank Engine::rank_of(const Flow& flow) {
  const EngineJob& job = *flow.job;
  if (flow.mail != nullptr) return {.weight = job.weight(), .mail = true};
  if (flow.hub != nullptr) {
    // As a lane of no special priority, behind those of the job.
    const auto lanes = static_cast<unsigned>(job.lanes().size());
    return {job.weight(), lanes, 0, lanes, flow.hub->service_place(flow), false};
  }
  const unsigned lane = flow.user->lane();
  const LanePlan& runs = job.lanes()[lane];
  return {job.weight(),
          lane,
          runs.priority,
          place_of(job.lanes(), lane),
          flow.user->service_place(flow, runs.choice->steps()),
          false};
}

// Returns the port that it leaves through.
PortQueue& Engine::take_route(Flow& flow, const bcube::Route& route) {
  const bcube::Hop first = route[0];
  flow.route = route;
  flow.unasked = route.size() == 1 ? &unasked_[first.level][first.digit] : &none_unasked_;
  return *ports_[port_to(first)];
}

// The flows of other jobs keep their credit, and what their senders have asked for.
//
// Flows are served in the order in which they are added: that of the differences between this
// server's address and the peers'. In a step over several levels it is not the order of ranks; with
// it, servers that send at the same time send to different ones, at every hop.
void Engine::add_flows(EngineJob& job) {
  const auto turn = [this](const Flow* flow) {
    return std::tuple(flow->stage, flow->step,
                      bcube::difference(neighbours_.space(), settings_.server, flow->peer));
  };
  for (PlanExecutor& executor : job.executors()) {
    std::vector<Flow*> flows;
    for (Flow& flow : executor.flows()) flows.push_back(&flow);
    std::sort(flows.begin(), flows.end(),
              [&](const Flow* a, const Flow* b) { return turn(a) < turn(b); });
    for (Flow* flow : flows) connect(*flow);
  }
  if (job.mailroom() == nullptr) return;
  // What they have in flight goes on after a reset.
  job.mailroom()->for_each_channel([&](MailChannel& channel) {
    for (Flow& flow : channel.flows()) {
      connect(flow);
      wake_answer(flow);
      wake_resend(flow);
      wake_segment(flow);
    }
  });
}

}  // namespace gradcube::dataplane
