#include "dataplane/daemon/job_coordinator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/daemon/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kLargestHeap = std::uint64_t{1} << 40;
// How long the others have, at most, to complete what they share with a trainer that has gone. A
// trainer that left in good order may have completed it long before lossy links let the others do
// so; a death has to be told soon.
constexpr auto kDrainAfterLeave = std::chrono::seconds(10);
constexpr auto kDrainAfterDeath = std::chrono::milliseconds(500);

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
  auto session = std::make_unique<Session>(std::move(region), doorbells[0],
                                           cluster_.plan().threads(), std::move(listeners));

  const auto outcome = jobs_.join(request.job, request.server,
                                  {static_cast<std::int32_t>(request.pid), request.uid});
  if (const auto* refusal = std::get_if<control::Refusal>(&outcome)) {
    close(doorbells[1]);
    throw JoinRefused(GRADCUBE_EJOB, refusal->message);
  }
  const auto& place = std::get<control::JobPlace>(outcome);

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
  for (const EngineAt& at : cluster_.engines(member.server)) {
    member.parts.push_back(
        {at, at.engine->prepare(member.job, *member.session, cluster_.kernels())});
  }
  for (const Part& part : member.parts) {
    part.at.poller->call([&] {
      part.at.engine->attach(*part.job);
      if (part.job->is_leader()) part.at.poller->watch(member.session->doorbell());
    });
  }
}

void JobCoordinator::start_if_complete(MemberId id) {
  const auto member = members_.find(id);
  if (member == members_.end()) return;
  const control::Job* job = jobs_.find(member->second.job);
  if (job != nullptr && job->state == control::JobState::running) start(job->id);
}

void JobCoordinator::start(std::uint32_t job) {
  const std::uint16_t epoch = jobs_.find(job)->epoch;
  on_engines(job, [&](Engine& engine) { engine.start(job, epoch); });
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
    // The completed ones first: they never exceed what is read as submitted after them.
    const std::uint64_t completed = member->session->completed();
    trainers.push_back({member->server, member->pid, member->session->published(), completed});
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

void JobCoordinator::leave(MemberId id, Departure departure, const std::string& reason) {
  const auto found = members_.find(id);
  if (found == members_.end() || found->second.draining) return;
  Member& member = found->second;
  const std::uint32_t job = member.job;
  const std::string awaited_by_member = awaited(member);
  const auto departed =
      departure == Departure::orderly ? jobs_.leave(job, member.server, GRADCUBE_EPEER)
      : departure == Departure::death ? jobs_.died(job, member.server, GRADCUBE_EPEER)
                                      : jobs_.evicted(job, member.server, GRADCUBE_EPEER, reason);
  if (departure != Departure::orderly && departed.has_value()) record(departed->message);
  if (!departed.has_value() || departed->forgotten) {
    drains_.erase(job);
    aborted_.erase(job);
    const Members members = members_of(job);
    detach(members);
    for (const Member* each : members) depart(each->id);
  } else if (aborted_.contains(job)) {  // the others have been told already
    depart(id);
  } else {
    drain(member, departure, departed->message + awaited_by_member);
  }
}

// Whom the member waits for, if it waits for others: a trainer that gives up waiting is not the
// cause of what follows.
std::string JobCoordinator::awaited(const Member& member) const {
  const control::Job* job = jobs_.find(member.job);
  const Session& session = *member.session;
  if (job == nullptr || session.published() == session.completed()) return "";
  if (job_facts(*job, trainers_of(member.job)).waiting_for.empty()) return "";
  return "; " + explain(member.id, session.completed() + 1);
}

void JobCoordinator::drain(Member& member, Departure departure, const std::string& message) {
  member.draining = true;
  const SteadyClock::time_point now = SteadyClock::now();
  Drain& drain = drains_[member.job];
  if (drain.message.empty()) drain.message = message;
  const bool idle = nothing_in_flight(member);
  drain.shared = std::min(drain.shared, member.session->completed());
  drain.orderly = drain.orderly && idle && departure == Departure::orderly;
  if (!idle || departure == Departure::violation) {
    drain.deadline = now;
  } else if (departure == Departure::death) {
    drain.deadline = std::min(drain.deadline, now + kDrainAfterDeath);
  } else {
    drain.deadline = std::min(drain.deadline, now + kDrainAfterLeave);
  }
  reap(now);
}

// Whether all that a trainer that has gone has submitted is completed; nothing more is taken.
bool JobCoordinator::nothing_in_flight(Member& member) {
  Session& session = *member.session;
  for (const Part& part : member.parts) {
    if (part.job->is_leader()) part.at.poller->call([&session] { session.stop_taking(); });
  }
  // What a leader engine has published it also completes, so equal counts mean that nothing is in
  // flight.
  const std::uint64_t submitted =
      session.region().header().submission_tail.load(std::memory_order_acquire);
  return submitted == session.published() && session.published() == session.completed();
}

bool JobCoordinator::shared_work_is_done(std::uint32_t job, const Drain& drain) const {
  const Members& members = members_of(job);
  return std::all_of(members.begin(), members.end(), [&](const Member* member) {
    const Session& session = *member->session;
    return member->draining || session.completed() >= std::min(drain.shared, session.published());
  });
}

void JobCoordinator::reap(SteadyClock::time_point now) {
  for (auto it = drains_.begin(); it != drains_.end();) {
    if (now < it->second.deadline && !shared_work_is_done(it->first, it->second)) {
      ++it;
      continue;
    }
    const auto [job, drain] = *it;
    it = drains_.erase(it);
    abort(job, drain);
  }
  fail_submissions();
  std::erase_if(departed_, [](const Member& member) {
    return std::all_of(member.parts.begin(), member.parts.end(),
                       [](const Part& part) { return part.job->references() == 0; });
  });
}

void JobCoordinator::abort(std::uint32_t job, const Drain& drain) {
  aborted_.insert(job);
  if (!drain.orderly) {
    record(fmt::format("job \"{}\" is aborted: {}", jobs_.find(job)->name, drain.message));
  }
  on_engines(job, [&](Engine& engine) { engine.freeze(job); });
  for (const Member* member : members_of(job)) {
    if (member->draining) continue;
    notify(*member, make_notice(shared::MessageType::failure, GRADCUBE_EPEER, drain.message));
  }
  const Members members = members_of(job);
  detach(members);
  jobs_.retire(job);
  for (const Member* member : members) {
    if (member->draining) depart(member->id);
  }
  fail_submissions();
}

// Of aborted jobs. Their sessions belong to no engine any more.
void JobCoordinator::fail_submissions() {
  std::vector<MemberId> violators;
  for (const std::uint32_t job : aborted_) {
    for (Member* member : members_of(job)) {
      Session& session = *member->session;
      Session::Take last = session.take();
      while (last == Session::Take::taken) last = session.take();
      session.complete_through(session.published(), GRADCUBE_EPEER);
      if (last == Session::Take::violation) violators.push_back(member->id);
    }
  }
  for (const MemberId id : violators) {
    if (const auto found = members_.find(id); found != members_.end()) evict(found->second);
  }
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
  std::uint64_t last = 0;
  for (const Member* member : members_of(job)) last = std::max(last, member->session->published());
  for (const Member* member : members_of(job)) {
    const RequestRange failed{member->session->completed() + 1, last};
    if (failed.first > failed.last) continue;  // nothing of its own has failed
    notify(*member, make_notice(shared::MessageType::failure, code, message, failed));
  }
  on_engines(job, [&](Engine& engine) { engine.reset(job, last, code); });
  jobs_.begin_reset(job, code, message);
  start(job);
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
  on_engines(event.job, [&](Engine& engine) { engine.freeze(event.job); });
  if (event.kind == EngineEvent::Kind::overflow) {
    fail_in_flight(event.job, GRADCUBE_EOVERFLOW,
                   describe_overflow(*job, event, cluster_.plan().space()));
  } else {
    fail_in_flight(event.job, GRADCUBE_EMISMATCH, disagreement(event.job, event));
  }
}

std::string JobCoordinator::disagreement(std::uint32_t job, const EngineEvent& event) const {
  const std::uint64_t collective = event.disagreement.collective;
  std::vector<SubmittedBy> submitted;
  for (const Member* member : members_of(job)) {
    SubmittedBy trainer{member->server, std::nullopt};
    if (member->session->published() >= collective) {
      trainer.request = member->session->request(collective);
    }
    submitted.push_back(trainer);
  }
  return describe_disagreement(*jobs_.find(job), event, submitted, cluster_.plan().space());
}

std::string JobCoordinator::explain(MemberId id, std::uint64_t request) const {
  const auto found = members_.find(id);
  const control::Job* job = found == members_.end() ? nullptr : jobs_.find(found->second.job);
  if (job == nullptr) return "the job has ended";
  return explain_wait(*job, jobs_.missing(job->id), trainers_of(job->id), request,
                      cluster_.plan().space());
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
