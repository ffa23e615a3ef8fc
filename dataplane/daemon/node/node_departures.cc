// Trainers that leave their jobs, in order or not, and what needs them afterwards
// (control/jobs/departures.h).

#include <fmt/format.h>
#include <utility>

#include "control/jobs/collective_text.h"
#include "dataplane/daemon/node/node.h"
#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace {

// While its job runs, the engines have taken what a trainer has submitted long before.
constexpr unsigned kMostLooks = 100;

// Of those that have left, between two looks.
constexpr std::size_t kMostToldAtOnce = 8;

std::string rank_text(const control::JobDescriptor& job, const control::Departure& departure) {
  std::uint32_t rank = 0;
  for (const control::JobMember& member : job.members) {
    if (member.server == departure.server) rank = member.rank * job.options.trainers;
  }
  return fmt::format("rank {}", rank + departure.local);
}

}  // namespace

void Node::leave(TrainerId trainer, Departure departure, std::string reason, control::Instant now) {
  JobGroup* group = find(trainer.attempt);
  if (group == nullptr || !group->member->stays(trainer.local)) return;
  Member& member = *group->member;
  if (departure == Departure::shutdown) {
    member.hub().outlive_daemon();
    departure = Departure::violation;
  }
  // Nobody says it again. So what there is no memory to tell now, a look() tells.
  member.leave(trainer.local, Farewell{departure, std::move(reason)});
  group->asking.erase(trainer.local);
  group->gone = !member.any_stays();
  stirred_ = true;
  tell_of_the_gone(*group, now);
  settle_leaving(*group, now);
}

void Node::tell_of_the_gone(JobGroup& group, control::Instant now) {
  for (unsigned local = 0; local < group.member->trainers(); ++local) {
    const Farewell* farewell = group.member->farewell(local);
    if (farewell != nullptr) tell_of(group, local, *farewell, now);
  }
}

void Node::tell_of(JobGroup& group, unsigned local, const Farewell& farewell,
                   control::Instant now) {
  Member& member = *group.member;
  const Departure departure = farewell.departure;
  const std::string how = departure == Departure::orderly ? "left"
                          : departure == Departure::death ? "died"
                                                          : farewell.reason;
  const std::string who = member.trainers() == 1 ? "the trainer" : fmt::format("trainer {}", local);
  const std::string line =
      fmt::format("{} of job \"{}\" on server {} (pid {}) {}", who, member.request().name,
                  space().text(server_), member.trainer(local).pid, how);
  // Who goes because its job has ended is no news.
  const bool is_news = departure == Departure::violation || !member.ended();
  const control::JobAgent* agent = jobs_.agent(group.attempt);
  const bool ends_the_job = agent != nullptr && !agent->is_ending();
  const bool goes_on = departure == Departure::orderly && !member.hub().needs(local);
  std::string text = line;
  if (departure == Departure::orderly && !goes_on) {
    text += " while the job had a hub, whose rounds need all trainers";
  }
  const bool orderly = departure == Departure::orderly && !member.anything_outstanding();
  // A trainer that gives up waiting is not the cause of what follows.
  if (departure == Departure::orderly && !group.last_report.empty()) {
    text += "; " + group.last_report;
  }
  if (departure == Departure::orderly) {
    group.leaving[local] = {text};
    happened(group, control::event::TrainerLeft{text, false, !group.gone, local, {}, false}, now);
  } else if (departure == Departure::violation) {
    happened(group, control::event::TrainerAborted{text, !group.gone}, now);
  } else {
    happened(group, control::event::TrainerLeft{text, true, !group.gone, local}, now);
  }
  member.told_of(local);
  if (departure != Departure::orderly && is_news) record(line);
  if (ends_the_job && member.admitted() && !orderly && !goes_on) record_abort(group, text);
}

// What they had submitted is known when the engines have taken it. A hub's rounds need all
// trainers: its job ends.
void Node::settle_leaving(JobGroup& group, control::Instant now) {
  Member& member = *group.member;
  const control::JobAgent* agent = jobs_.agent(group.attempt);
  if (agent == nullptr || agent->is_ending()) group.leaving.clear();
  if (group.leaving.empty() || agent->phase() != control::JobAgent::Phase::running) return;
  for (auto next = group.leaving.begin(); next != group.leaving.end();) {
    const auto entry = next++;
    auto& [local, leaving] = *entry;
    control::event::TrainerLeft left{leaving.how, false, !group.gone, local};
    const bool ends = member.hub().needs(local) || ++leaving.looks > kMostLooks;
    if (!ends && !member.take_last(local)) continue;
    if (!ends) left.submitted = member.submitted(local).published;
    happened(group, left, now);
    group.leaving.erase(entry);
  }
}

// Tells the trainers here that stay.
std::uint32_t Node::explain(JobGroup& group, const std::string& text) {
  const std::uint32_t number = ++group.notices;
  notify(group, make_failure(number, GRADCUBE_EPEER, text));
  return number;
}

// What they have submitted and a trainer that has left has not.
void Node::miss_the_gone(JobGroup& group, control::Instant now) {
  Member& member = *group.member;
  if (!group.departures.any() || !member.attached()) return;
  const control::JobDescriptor& job = *group.descriptor;
  const control::LaneNumbers missed = group.departures.missed(
      member.reached(), member.counts().completed, around_.timing.jobs.run_on, now,
      [&member] { return member.segments_passed(); });
  for (unsigned lane = 0; lane < missed.size(); ++lane) {
    if (missed[lane] == 0) continue;
    const control::Departure& first = *group.departures.first_in(lane);
    const std::string text = fmt::format(
        "{} needs {}: {}", control::collective_text(job.name, missed.size(), {lane, missed[lane]}),
        rank_text(job, first), first.how);
    const control::Disagreement what{lane, missed[lane], GRADCUBE_EPEER, text,
                                     control::Disagreement::Cause::departure};
    happened(group, control::event::Disagreed{group.epoch, what}, now);
  }
  end_deserted(group);
  if (!member.hub().is_needed()) return;
  const control::Departure& first = *group.departures.first_in(0);
  const std::string text =
      fmt::format("the hub of job \"{}\" needs {}: {}", job.name, rank_text(job, first), first.how);
  member.hub().lose(GRADCUBE_EPEER, text, explain(group, text));
}

// Only who waits for it is told; and of a few at a time, as a trainer keeps the newest notices
// alone, and its socket has room for so many.
void Node::end_deserted(JobGroup& group) {
  for (const auto& [peer, locals] : group.member->deserters(kMostToldAtOnce)) {
    const control::Departure* departure = group.departures.of(peer.first, peer.second);
    if (departure == nullptr) continue;
    const std::string text = fmt::format("{} exchanges no more messages in job \"{}\": {}",
                                         rank_text(*group.descriptor, *departure),
                                         group.descriptor->name, departure->how);
    const std::uint32_t number = ++group.notices;
    for (unsigned local = 0; local < group.member->trainers(); ++local) {
      if ((locals >> local & 1) == 0) continue;
      notify(group, local, make_failure(number, GRADCUBE_EPEER, text));
    }
    group.member->end_deserted(peer, number);
  }
}

}  // namespace gradcube::dataplane
