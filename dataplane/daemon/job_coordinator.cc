#include "dataplane/daemon/job_coordinator.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/socket.h>
#include <unistd.h>

#include "control/base/errors.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

constexpr std::uint64_t kLargestHeap = std::uint64_t{1} << 40;
// How long the others have, at most, to complete what they share with a trainer that has gone. Who
// left in good order may have done so long before lossy links let them; a death is to be told soon.
constexpr auto kDrainAfterLeave = std::chrono::seconds(10);
constexpr auto kDrainAfterDeath = std::chrono::milliseconds(500);

std::string describe(const CollectiveRequest& request) {
  return fmt::format("{} {} {}", request.count, aggregation::data_type_name(request.dtype),
                     aggregation::operation_name(request.operation));
}

}  // namespace

JobCoordinator::~JobCoordinator() {
  while (!members_.empty()) detach(members_.begin()->first);
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

  Member member;
  member.id = next_member_++;
  member.job = place.job;
  member.server = request.server;
  member.pid = request.pid;
  member.session = std::move(session);
  const Member& joined_member = members_.emplace(member.id, std::move(member)).first->second;
  try {
    attach(members_.at(joined_member.id));
  } catch (...) {
    close(doorbells[1]);
    leave(joined_member.id, Departure::violation, "could not be attached to its engines");
    throw;
  }
  const JoinedSession joined{joined_member.id,
                             place.rank,
                             place.size,
                             joined_member.session->region().descriptor(),
                             joined_member.session->region().bytes(),
                             doorbells[1]};
  return joined;
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
  on_each(engines_of(job), [&](const EngineAt& at) { at.engine->start(job, epoch); });
}

std::vector<JobCoordinator::Member*> JobCoordinator::members_of(std::uint32_t job) {
  std::vector<Member*> members;
  for (auto& [id, member] : members_) {
    if (member.job == job) members.push_back(&member);
  }
  std::sort(members.begin(), members.end(),
            [](const Member* a, const Member* b) { return a->server < b->server; });
  return members;
}

std::vector<const JobCoordinator::Member*> JobCoordinator::members_of(std::uint32_t job) const {
  std::vector<const Member*> members;
  for (Member* member : const_cast<JobCoordinator*>(this)->members_of(job)) {
    members.push_back(member);
  }
  return members;
}

std::vector<EngineAt> JobCoordinator::engines_of(std::uint32_t job) {
  std::vector<EngineAt> engines;
  for (Member* member : members_of(job)) {
    for (const Part& part : member->parts) engines.push_back(part.at);
  }
  return engines;
}

void JobCoordinator::leave(MemberId id, Departure departure, const std::string& reason) {
  const auto found = members_.find(id);
  if (found == members_.end()) return;
  Member& member = found->second;
  const std::uint32_t job = member.job;
  // What a leader engine has published it also completes, so equal counts mean that nothing is in
  // flight.
  const Session& session = *member.session;
  const std::uint64_t submitted =
      session.region().header().submission_tail.load(std::memory_order_acquire);
  const bool nothing_in_flight =
      submitted == session.published() && session.published() == session.completed();
  const auto departed =
      departure == Departure::orderly ? jobs_.leave(job, member.server, GRADCUBE_EPEER)
      : departure == Departure::death ? jobs_.died(job, member.server, GRADCUBE_EPEER)
                                      : jobs_.evicted(job, member.server, GRADCUBE_EPEER, reason);
  if (!departed.has_value() || departed->forgotten) {
    drains_.erase(job);
    aborted_.erase(job);
    detach_all(job);
    return;
  }
  if (aborted_.contains(job)) {  // the others have been told already
    detach(id);
    return;
  }
  member.draining = true;
  const SteadyClock::time_point now = SteadyClock::now();
  Drain& ending = drains_[job];
  if (ending.message.empty()) ending.message = departed->message;
  ending.shared = std::min(ending.shared, member.session->completed());
  if (!nothing_in_flight || departure == Departure::violation) {
    ending.deadline = now;
  } else if (departure == Departure::death) {
    ending.deadline = std::min(ending.deadline, now + kDrainAfterDeath);
  } else {
    ending.deadline = std::min(ending.deadline, now + kDrainAfterLeave);
  }
  reap(now);
}

bool JobCoordinator::shared_work_is_done(std::uint32_t job, const Drain& ending) {
  const std::vector<Member*> members = members_of(job);
  return std::all_of(members.begin(), members.end(), [&](const Member* member) {
    return member->draining || member->session->completed() >= ending.shared;
  });
}

void JobCoordinator::reap(SteadyClock::time_point now) {
  for (auto it = drains_.begin(); it != drains_.end();) {
    if (now < it->second.deadline && !shared_work_is_done(it->first, it->second)) {
      ++it;
      continue;
    }
    const auto [job, ending] = *it;
    it = drains_.erase(it);
    abort(job, GRADCUBE_EPEER, ending.message);
  }
  std::erase_if(departed_, [](const Member& member) {
    return std::all_of(member.parts.begin(), member.parts.end(),
                       [](const Part& part) { return part.job->references() == 0; });
  });
}

void JobCoordinator::abort(std::uint32_t job, std::int32_t code, const std::string& message) {
  aborted_.insert(job);
  const std::vector<EngineAt> engines = engines_of(job);
  on_each(engines, [&](const EngineAt& at) { at.engine->freeze(job); });
  for (const Member* member : members_of(job)) {
    if (member->draining) continue;
    shared::Notice notice{};
    notice.type = shared::MessageType::failure;
    notice.code = code;
    message.copy(notice.text, shared::kNoticeTextBytes - 1);
    channel_.notify(member->id, notice);
  }
  on_each(engines, [&](const EngineAt& at) { at.engine->abort(job, code); });
  for (const Member* member : members_of(job)) {
    if (member->draining) detach(member->id);
  }
}

void JobCoordinator::fail_in_flight(std::uint32_t job, std::int32_t code,
                                    const std::string& message) {
  const std::vector<EngineAt> engines = engines_of(job);
  std::uint64_t last = 0;
  for (const Member* member : members_of(job)) last = std::max(last, member->session->published());
  for (const Member* member : members_of(job)) {
    shared::Notice notice{};
    notice.type = shared::MessageType::failure;
    notice.code = code;
    notice.first_request = member->session->completed() + 1;
    notice.last_request = last;
    if (notice.first_request > last) continue;  // nothing of its own has failed
    message.copy(notice.text, shared::kNoticeTextBytes - 1);
    channel_.notify(member->id, notice);
  }
  on_each(engines, [&](const EngineAt& at) { at.engine->reset(job, last, code); });
  jobs_.begin_reset(job, code, message);
  start(job);
}

void JobCoordinator::detach_all(std::uint32_t job) {
  for (const Member* member : members_of(job)) detach(member->id);
}

void JobCoordinator::detach(MemberId id) {
  const auto found = members_.find(id);
  Member member = std::move(found->second);
  members_.erase(found);
  for (const Part& part : member.parts) {
    part.at.poller->call([&] {
      if (part.job->is_leader()) part.at.poller->unwatch(member.session->doorbell());
      part.at.engine->detach(member.job);
    });
  }
  departed_.push_back(std::move(member));
}

void JobCoordinator::handle(const EngineEvent& event) {
  const control::Job* job = jobs_.find(event.job);
  if (job == nullptr) return;
  // Of whatever epoch: a session that holds nonsense does not get better.
  if (event.kind == EngineEvent::Kind::violation) {
    for (const Member* member : members_of(event.job)) {
      if (member->server != event.server || member->draining) continue;
      const std::string reason =
          fmt::format("was evicted by its daemon: {}", member->session->violation());
      const MemberId id = member->id;
      channel_.evict(id, GRADCUBE_EPROTOCOL,
                     fmt::format("this session was closed: {}", member->session->violation()));
      leave(id, Departure::violation, reason);
      return;
    }
    return;
  }
  if (job->epoch != event.epoch || job->state != control::JobState::running) return;
  on_each(engines_of(event.job), [&](const EngineAt& at) { at.engine->freeze(event.job); });
  fail_in_flight(event.job, GRADCUBE_EMISMATCH, describe_disagreement(event.job, event));
}

std::string JobCoordinator::describe_disagreement(std::uint32_t job, const EngineEvent& event) {
  const std::uint64_t collective = event.disagreement.collective;
  std::map<std::string, std::vector<std::string>> servers_by_order;
  for (const Member* member : members_of(job)) {
    const bool submitted = member->session->published() >= collective;
    const std::string order =
        submitted ? describe(member->session->request(collective)) : "nothing yet";
    servers_by_order[order].push_back(cluster_.plan().space().text(member->server));
  }
  std::vector<std::string> parts;
  for (const auto& [order, servers] : servers_by_order) {
    parts.push_back(fmt::format("{} submitted {}", fmt::join(servers, " "), order));
  }
  return fmt::format(
      "collective {} of job \"{}\": the trainers disagree on count, type or operation: {} (met at "
      "server {}, "
      "thread {}, step {}); all trainers must submit the same collectives in the same order",
      collective, jobs_.find(job)->name, fmt::join(parts, "; "),
      cluster_.plan().space().text(event.server), event.disagreement.thread,
      event.disagreement.step);
}

std::string JobCoordinator::explain(MemberId id, std::uint64_t request) const {
  const auto found = members_.find(id);
  if (found == members_.end()) return "the job has ended";
  const control::Job* job = jobs_.find(found->second.job);
  if (job == nullptr) return "the job has ended";
  if (std::string missing = jobs_.missing(job->id); !missing.empty()) return missing;
  std::vector<std::string> late;
  std::vector<std::string> at_work;
  for (const Member* member : members_of(job->id)) {
    const std::string server = cluster_.plan().space().text(member->server);
    if (member->session->published() < request) {
      late.push_back(fmt::format("{} (pid {})", server, member->pid));
    } else if (member->session->completed() < request) {
      at_work.push_back(server);
    }
  }
  if (!late.empty()) {
    return fmt::format(
        "collective {} of job \"{}\" waits for trainers that have not submitted it: {}", request,
        job->name, fmt::join(late, ", "));
  }
  return fmt::format(
      "collective {} of job \"{}\" has been submitted by all {} trainers and is under way at {}",
      request, job->name, job->joined,
      at_work.empty() ? std::string("none: it has just ended")
                      : fmt::format("{}", fmt::join(at_work, " ")));
}

namespace {

// 0 stands for the joining of the trainers.
std::uint64_t collective_awaited(const control::Job& job, const JobFacts& fact) {
  return job.state == control::JobState::gathering ? 0 : fact.collectives + 1;
}

// Which of these trainers the others wait for: those that have not submitted the oldest collective
// that is not completed everywhere, if another one has.
std::vector<bcube::ServerId> late_trainers(const JobFacts& fact) {
  std::vector<bcube::ServerId> late;
  for (const JobFacts::Trainer& trainer : fact.trainers) {
    if (trainer.submitted <= fact.collectives) late.push_back(trainer.server);
  }
  if (late.size() == fact.trainers.size()) late.clear();
  return late;
}

}  // namespace

std::vector<JobFacts> JobCoordinator::facts(SteadyClock::time_point now) const {
  std::vector<JobFacts> facts;
  for (const control::Job* job : jobs_.jobs()) {
    JobFacts fact;
    fact.name = job->name;
    fact.id = job->id;
    fact.epoch = job->epoch;
    fact.state = control::state_name(job->state);
    fact.collectives = UINT64_MAX;
    for (const Member* member : members_of(job->id)) {
      if (member->draining) continue;
      const Session& session = *member->session;
      // The completed ones first: they never exceed what is read as submitted after them.
      const std::uint64_t completed = session.completed();
      fact.trainers.push_back({member->server, member->pid, session.published(), completed});
      fact.collectives = std::min(fact.collectives, completed);
    }
    if (fact.trainers.empty()) fact.collectives = 0;
    if (job->state == control::JobState::gathering) {
      for (bcube::ServerId server = 0; server < job->members.size(); ++server) {
        if (!job->members[server]) fact.waiting_for.push_back(server);
      }
    } else if (job->state == control::JobState::running) {
      fact.waiting_for = late_trainers(fact);
    }
    const auto wait = waits_.find(job->id);
    if (!fact.waiting_for.empty() && wait != waits_.end() &&
        wait->second.collective == collective_awaited(*job, fact)) {
      fact.waiting_ms =
          std::chrono::duration_cast<std::chrono::milliseconds>(now - wait->second.since).count();
    }
    facts.push_back(std::move(fact));
  }
  return facts;
}

void JobCoordinator::note_waits(SteadyClock::time_point now) {
  std::map<std::uint32_t, Wait> waits;
  for (const JobFacts& fact : facts(now)) {
    if (fact.waiting_for.empty()) continue;
    const std::uint64_t collective = collective_awaited(*jobs_.find(fact.id), fact);
    const auto before = waits_.find(fact.id);
    const bool same = before != waits_.end() && before->second.collective == collective;
    waits[fact.id] = same ? before->second : Wait{collective, now};
  }
  waits_ = std::move(waits);
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
