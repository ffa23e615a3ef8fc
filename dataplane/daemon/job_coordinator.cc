#include "dataplane/daemon/job_coordinator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <numeric>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "control/plan/algorithms.h"
#include "dataplane/daemon/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kLargestHeap = std::uint64_t{1} << 40;

// With what the trainer left out.
control::JobOptions completed(control::JobOptions options, const bcube::AddressSpace& space) {
  if (options.lanes.empty()) options.lanes.emplace_back();
  for (control::LaneOptions& lane : options.lanes) {
    if (lane.algorithm.empty()) lane.algorithm = control::kDefaultAlgorithm;
  }
  if (options.members.empty()) {
    options.members.resize(space.servers());
    std::iota(options.members.begin(), options.members.end(), 0U);
  }
  return options;
}

// Throws JoinRefused.
LanePlans make_plans(const control::JobOptions& options, const control::Topology& topology) {
  LanePlans lanes;
  try {
    const auto placement = control::Placement::grid(topology, options.members, "members");
    for (const control::LaneOptions& lane : options.lanes) {
      lanes.push_back({std::make_shared<control::Plan>(
                           control::make_plan(lane.algorithm, topology, placement, "algorithm")),
                       lane.priority});
    }
  } catch (const control::UsageError& error) {
    throw JoinRefused(GRADCUBE_EINVAL, error.what());
  }
  return lanes;
}

SessionShape shape_of(const LanePlans& lanes, std::size_t ranks) {
  SessionShape shape;
  shape.ranks = static_cast<unsigned>(ranks);
  for (const LanePlan& lane : lanes) shape.lane_threads.push_back(lane.plan->threads());
  return shape;
}

}  // namespace

JobCoordinator::~JobCoordinator() {
  while (!members_by_job_.empty()) {
    const Members members = members_by_job_.begin()->second;
    detach(members);
    for (const Member* member : members) depart(member->id);
  }
  // Packets on their way still point into the trainers' memory, which goes with departed_.
  cluster_.discard_packets();
}

JoinedSession JobCoordinator::join(const JoinRequest& request) {
  if (request.heap_bytes == 0 || request.heap_bytes > kLargestHeap) {
    throw JoinRefused(
        GRADCUBE_EINVAL,
        fmt::format("a heap of {} bytes was asked for: GRADCUBE_HEAP is from 1 to {} bytes",
                    request.heap_bytes, kLargestHeap));
  }
  const control::JobOptions options = completed(request.options, space());
  LanePlans lanes = make_plans(options, cluster_.topology());
  auto region = std::make_unique<SessionRegion>(request.heap_bytes);
  std::array<int, 2> doorbells{};
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, doorbells.data()) != 0) {
    throw control::SetupError(
        fmt::format("cannot make a session's doorbell: {}", std::strerror(errno)));
  }
  std::vector<Doorbell*> listeners;
  for (const EngineAt& at : cluster_.engines(request.server)) {
    if (!at.leader) listeners.push_back(&at.poller->doorbell());
  }
  auto session =
      std::make_unique<Session>(std::move(region), doorbells[0],
                                shape_of(lanes, options.members.size()), std::move(listeners));

  const auto outcome = jobs_.join({request.job,
                                   request.server,
                                   {static_cast<std::int32_t>(request.pid), request.uid},
                                   options,
                                   request.rank});
  if (const auto* refusal = std::get_if<control::Refusal>(&outcome)) {
    close(doorbells[1]);
    throw JoinRefused(GRADCUBE_EJOB, refusal->message);
  }
  const auto& place = std::get<control::JobPlace>(outcome);
  if (Record& known = records_[place.job]; known.lanes.empty()) known.lanes = std::move(lanes);

  Member fresh;
  fresh.id = next_member_++;
  fresh.job = place.job;
  fresh.server = request.server;
  fresh.pid = request.pid;
  fresh.session = std::move(session);
  Member& member = add(std::move(fresh));
  try {
    attach(member);
  } catch (...) {
    close(doorbells[1]);
    leave(member.id, Departure::violation, "could not be attached to its engines");
    throw;
  }
  const SessionRegion& shared = member.session->region();
  return {member.id, place.rank, place.size, shared.descriptor(), shared.bytes(), doorbells[1]};
}

JobCoordinator::Member& JobCoordinator::add(Member member) {
  const MemberId id = member.id;
  Member& added = members_.emplace(id, std::move(member)).first->second;
  Members& members = members_by_job_[added.job];
  const auto after = std::find_if(members.begin(), members.end(), [&](const Member* other) {
    return other->server > added.server;
  });
  members.insert(after, &added);
  return added;
}

// Of a member that no engine knows any more: what it leaves behind waits for its last packets.
void JobCoordinator::depart(MemberId id) {
  const auto found = members_.find(id);
  const auto job = members_by_job_.find(found->second.job);
  std::erase(job->second, &found->second);
  if (job->second.empty()) members_by_job_.erase(job);
  departed_.push_back(std::move(found->second));
  members_.erase(found);
}

void JobCoordinator::attach(Member& member) {
  const Record& known = records_.at(member.job);
  const std::uint32_t weight = jobs_.find(member.job)->options.weight;
  for (const EngineAt& at : cluster_.engines(member.server)) {
    member.parts.push_back({at, at.engine->prepare(member.job, *member.session, known.lanes, weight,
                                                   cluster_.kernels())});
  }
  for (const Part& part : member.parts) {
    part.at.poller->call([&] {
      part.at.engine->attach(*part.job, 0);
      if (part.job->is_leader()) part.at.poller->watch(member.session->doorbell());
    });
  }
}

void JobCoordinator::start_if_complete(MemberId id) {
  const auto member = members_.find(id);
  if (member == members_.end()) return;
  const control::Job* job = jobs_.find(member->second.job);
  if (job == nullptr || job->state != control::JobState::running) return;
  arm(*job);
  on_engines(job->id, [job](Engine& engine) { engine.start(job->id); });
}

// Only now the ranks are known.
void JobCoordinator::arm(const control::Job& facts) {
  // Members and ranks of a plan both ascend with the servers.
  std::vector<control::Rank> seen;
  for (const control::Job::Member& member : facts.members) seen.push_back(member.rank);
  const RankOrder ranks = facts.ranks_are_wished ? RankOrder(std::move(seen)) : RankOrder();
  for (const Member* member : members_of(facts.id)) {
    for (const Part& part : member->parts) {
      part.at.poller->call([&] {
        part.at.engine->detach(facts.id);
        part.at.engine->attach(*part.job, facts.epoch, ranks);
      });
    }
  }
}

// Takes nothing more of the members whose trainers have gone.
void JobCoordinator::hold_the_draining(std::uint32_t job) const {
  for (const Member* member : members_of(job)) {
    if (!member->draining) continue;
    for (const Part& part : member->parts) {
      part.at.poller->call([&] { part.at.engine->hold(job); });
    }
  }
}

const JobCoordinator::Members& JobCoordinator::members_of(std::uint32_t job) const {
  static const Members kNobody;
  const auto found = members_by_job_.find(job);
  return found == members_by_job_.end() ? kNobody : found->second;
}

std::vector<JobFacts::Trainer> JobCoordinator::trainers_of(std::uint32_t job) const {
  std::vector<JobFacts::Trainer> trainers;
  for (const Member* member : members_of(job)) {
    if (member->draining) continue;
    JobFacts::Trainer trainer{member->server, member->pid, {}};
    const Session& session = *member->session;
    for (unsigned lane = 0; lane < session.lanes(); ++lane) {
      // The completed ones first: they never exceed what is read as submitted after them.
      const std::uint64_t completed = session.completed(lane);
      trainer.lanes.push_back({session.published(lane), completed});
    }
    trainers.push_back(std::move(trainer));
  }
  return trainers;
}

std::vector<EngineAt> JobCoordinator::engines_of(std::uint32_t job) const {
  std::vector<EngineAt> engines;
  for (const Member* member : members_of(job)) {
    for (const Part& part : member->parts) engines.push_back(part.at);
  }
  return engines;
}

void JobCoordinator::on_engines(std::uint32_t job,
                                const std::function<void(Engine&)>& function) const {
  on_each(engines_of(job), [&](const EngineAt& at) { function(*at.engine); });
}

// Of a member whose session violates the protocol.
void JobCoordinator::evict(Member& member) {
  const MemberId id = member.id;
  const std::string violation = member.session->violation();
  if (channel_ != nullptr) {
    channel_->evict(id, GRADCUBE_EPROTOCOL, fmt::format("this session was closed: {}", violation));
  }
  leave(id, Departure::violation, fmt::format("was evicted by its daemon: {}", violation));
}

void JobCoordinator::notify(const Member& member, const shared::Notice& notice) {
  if (channel_ != nullptr) channel_->notify(member.id, notice);
}

void JobCoordinator::record(const std::string& line) {
  if (channel_ != nullptr) channel_->record(line);
}

void JobCoordinator::fail_in_flight(std::uint32_t job, std::int32_t code,
                                    const std::string& message) {
  record(message);
  Record& known = records_.at(job);
  const std::uint32_t number = ++known.notices;
  const auto lanes = static_cast<unsigned>(known.lanes.size());
  for (const Member* member : members_of(job)) {
    for (unsigned lane = 0; lane < lanes; ++lane) {
      // What an earlier reset has failed keeps its reason.
      const std::uint64_t published = member->session->published(lane);
      if (published > known.cuts[lane].through) known.cuts[lane] = {published, code, number};
    }
  }
  for (const Member* member : members_of(job)) {
    bool concerned = false;
    for (unsigned lane = 0; lane < lanes; ++lane) {
      concerned = concerned || (known.cuts[lane].notice == number &&
                                member->session->completed(lane) < known.cuts[lane].through);
    }
    if (concerned) notify(*member, make_failure(number, code, message));
  }
  jobs_.begin_reset(job);
  const std::uint16_t epoch = jobs_.find(job)->epoch;
  on_engines(job, [&](Engine& engine) { engine.reset(job, known.cuts, epoch); });
  on_engines(job, [&](Engine& engine) { engine.start(job); });
  hold_the_draining(job);
}

void JobCoordinator::detach(const Members& members) {
  std::map<Poller*, std::vector<std::pair<Member*, Part*>>> by_poller;
  for (Member* member : members) {
    if (!member->attached) continue;
    for (Part& part : member->parts) by_poller[part.at.poller].push_back({member, &part});
  }
  for (const auto& [poller, parts] : by_poller) {
    poller->call([&poller = *poller, &parts = parts] {
      for (const auto& [member, part] : parts) {
        if (part->job->is_leader()) poller.unwatch(member->session->doorbell());
        part->at.engine->detach(member->job);
      }
    });
  }
  for (Member* member : members) member->attached = false;
}

void JobCoordinator::handle(const EngineEvent& event) {
  if (event.kind == EngineEvent::Kind::progress) return;
  const control::Job* job = jobs_.find(event.job);
  if (job == nullptr) return;
  // In every epoch: a session that has violated the protocol once is closed.
  if (event.kind == EngineEvent::Kind::violation) {
    for (Member* member : members_of(event.job)) {
      if (member->server != event.server || member->draining) continue;
      evict(*member);
      return;
    }
    return;
  }
  if (job->epoch != event.epoch || job->state != control::JobState::running) return;
  on_engines(event.job, [&](Engine& engine) { engine.halt(event.job); });
  if (event.kind == EngineEvent::Kind::overflow) {
    fail_in_flight(event.job, GRADCUBE_EOVERFLOW, describe_overflow(*job, event, space()));
  } else {
    fail_in_flight(event.job, GRADCUBE_EMISMATCH, disagreement(event.job, event));
  }
}

std::string JobCoordinator::disagreement(std::uint32_t job, const EngineEvent& event) const {
  const auto& [lane, collective, peer, thread, step] = event.disagreement;
  std::vector<SubmittedBy> submitted;
  for (const Member* member : members_of(job)) {
    SubmittedBy trainer{member->server, std::nullopt};
    // One that is far ahead may have used the collective's place again.
    const CollectiveRequest& request = member->session->request(lane, collective);
    if (request.number == collective) trainer.request = request;
    submitted.push_back(trainer);
  }
  return describe_disagreement(*jobs_.find(job), event, submitted, space());
}

std::string JobCoordinator::explain(MemberId id, CollectiveName collective) const {
  const auto found = members_.find(id);
  const control::Job* job = found == members_.end() ? nullptr : jobs_.find(found->second.job);
  if (job == nullptr) return "the job has ended";
  if (collective.lane >= job->options.lanes.size()) return "the job has no such lane";
  return explain_wait(*job, jobs_.missing(job->id), trainers_of(job->id), collective, space());
}

std::vector<JobFacts> JobCoordinator::facts(SteadyClock::time_point now) const {
  std::vector<JobFacts> facts;
  for (const control::Job* job : jobs_.jobs()) {
    facts.push_back(job_facts(*job, trainers_of(job->id)));
    facts.back().waiting_ms = waits_.milliseconds(facts.back(), now);
  }
  return facts;
}

std::uint64_t JobCoordinator::trainer_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& [id, member] : members_) bytes += member.session->region().resident_bytes();
  for (const Member& member : departed_) bytes += member.session->region().resident_bytes();
  return bytes;
}

unsigned JobCoordinator::trainers(bcube::ServerId server) const {
  return static_cast<unsigned>(std::count_if(
      members_.begin(), members_.end(),
      [&](const auto& entry) { return entry.second.server == server && !entry.second.draining; }));
}

std::string JobCoordinator::job_name(std::uint32_t job) const {
  const control::Job* found = jobs_.find(job);
  return found == nullptr ? std::string() : found->name;
}

}  // namespace gradcube::dataplane
