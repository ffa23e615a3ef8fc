// What JobCoordinator does when a trainer leaves, dies or is evicted: drain, abort, free.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "dataplane/daemon/job_coordinator.h"
#include "dataplane/daemon/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {
namespace {

// How long the others have, at most, to complete what they share with a trainer that has gone. A
// trainer that left in good order may have completed it long before lossy links let the others do
// so; a death has to be told soon.
constexpr auto kDrainAfterLeave = std::chrono::seconds(10);
constexpr auto kDrainAfterDeath = std::chrono::milliseconds(500);

}  // namespace

void JobCoordinator::leave(MemberId id, Departure departure, const std::string& reason) {
  const auto found = members_.find(id);
  if (found == members_.end() || found->second.draining) return;
  Member& member = found->second;
  const std::uint32_t job = member.job;
  const std::string awaited_by_member = departure == Departure::orderly ? awaited(member) : "";
  const auto departed = departure == Departure::orderly ? jobs_.leave(job, member.server)
                        : departure == Departure::death ? jobs_.died(job, member.server)
                                                        : jobs_.evicted(job, member.server, reason);
  if (departure != Departure::orderly && departed.has_value()) record(departed->message);
  if (!departed.has_value() || departed->forgotten) {
    drains_.erase(job);
    records_.erase(job);
    const Members members = members_of(job);
    detach(members);
    for (const Member* each : members) depart(each->id);
  } else if (is_aborted(job)) {  // the others have been told already
    depart(id);
  } else {
    drain(member, departure, departed->message + awaited_by_member);
  }
}

bool JobCoordinator::is_aborted(std::uint32_t job) const {
  const auto record = records_.find(job);
  return record != records_.end() && record->second.abort_notice.has_value();
}

// Whom the member waits for, if it waits for others: a trainer that gives up waiting is not the
// cause of what follows.
std::string JobCoordinator::awaited(const Member& member) const {
  const control::Job* job = jobs_.find(member.job);
  const Session& session = *member.session;
  if (job == nullptr || job_facts(*job, trainers_of(member.job)).waiting_for.empty()) return "";
  for (unsigned lane = 0; lane < session.lanes(); ++lane) {
    const std::uint64_t completed = session.completed(lane);
    if (session.published(lane) == completed) continue;
    return "; " + explain(member.id, {lane, completed + 1});
  }
  return "";
}

void JobCoordinator::drain(Member& member, Departure departure, const std::string& message) {
  member.draining = true;
  const SteadyClock::time_point now = SteadyClock::now();
  Drain& drain = drains_[member.job];
  if (drain.message.empty()) drain.message = message;
  const bool idle = nothing_in_flight(member);
  for (unsigned lane = 0; lane < member.session->lanes(); ++lane) {
    drain.shared[lane] = std::min(drain.shared[lane], member.session->completed(lane));
  }
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
    part.at.poller->call([&] { part.at.engine->hold(member.job); });
  }
  // What a leader engine has published it also completes, so equal counts mean that nothing is in
  // flight.
  return !session.has_submission() && !session.anything_in_flight();
}

bool JobCoordinator::shared_work_is_done(std::uint32_t job, const Drain& drain) const {
  const Members& members = members_of(job);
  return std::all_of(members.begin(), members.end(), [&](const Member* member) {
    const Session& session = *member->session;
    for (unsigned lane = 0; !member->draining && lane < session.lanes(); ++lane) {
      const std::uint64_t shared = std::min(drain.shared[lane], session.published(lane));
      if (session.completed(lane) < shared) return false;
    }
    return true;
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
  Record& known = records_.at(job);
  const std::uint32_t number = ++known.notices;
  known.abort_notice = number;
  if (!drain.orderly) {
    record(fmt::format("job \"{}\" is aborted: {}", jobs_.find(job)->name, drain.message));
  }
  on_engines(job, [&](Engine& engine) { engine.halt(job); });
  for (const Member* member : members_of(job)) {
    if (member->draining) continue;
    notify(*member, make_failure(number, GRADCUBE_EPEER, drain.message));
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
  for (const auto& [job, record] : records_) {
    if (!record.abort_notice.has_value()) continue;
    for (Member* member : members_of(job)) {
      fail_submissions(*member->session, record);
      if (member->session->violation() != nullptr) violators.push_back(member->id);
    }
  }
  for (const MemberId id : violators) {
    if (const auto found = members_.find(id); found != members_.end()) evict(found->second);
  }
}

void JobCoordinator::fail_submissions(Session& session, const Record& record) {
  while (session.take() == Session::Take::taken) {
  }
  for (unsigned lane = 0; lane < session.lanes(); ++lane) {
    const std::uint64_t published = session.published(lane);
    // A collective that a reset has failed keeps its reason.
    const LaneCut& cut = record.cuts[lane];
    session.complete_through(lane, std::min(published, cut.through), cut.code, cut.notice);
    session.complete_through(lane, published, GRADCUBE_EPEER, *record.abort_notice);
  }
}

}  // namespace gradcube::dataplane
