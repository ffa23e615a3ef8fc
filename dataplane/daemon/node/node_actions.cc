// How a node carries out what its job control asks for: messages, commands to the engines, notices
// to trainers.
#include <algorithm>
#include <fmt/format.h>
#include <limits>
#include <variant>

#include "control/jobs/wait_cause.h"
#include "dataplane/daemon/node/node.h"
#include "dataplane/daemon/trainers/session_messages.h"

#include "gradcube/gradcube.h"

namespace gradcube::dataplane {

namespace command = control::command;
namespace event = control::event;
namespace notice = control::notice;

void Node::carry_out(const control::JobAction& action, control::Instant now) {
  if (const auto* message = std::get_if<control::JobMessage>(&action)) {
    send({server_, message->to.server, *message}, now);
  } else if (const auto* order = std::get_if<control::ToEngines>(&action)) {
    JobGroup* group = find(order->attempt);
    if (group == nullptr) return;
    std::visit([&](const auto& each) { carry_out(*group, each, now); }, order->command);
  } else {
    const auto& told = std::get<control::ToTrainer>(action);
    JobGroup* group = find(told.attempt);
    if (group == nullptr) return;
    std::visit([&](const auto& each) { tell(*group, each, now); }, told.notice);
  }
}

void Node::happened(const JobGroup& group, const control::JobEvent& event, control::Instant now) {
  jobs_.on_event(group.attempt, event, now, actions_);
}

void Node::tell_counts(const JobGroup& group, control::Instant now) {
  LaneCounts counts = group.member->counts();
  const auto& asked = group.asked;
  std::string submitted;
  if (asked.has_value()) {
    std::vector<std::optional<CollectiveRequest>> requests;
    for (unsigned local = 0; local < group.member->trainers(); ++local) {
      requests.push_back(group.member->submitted_as(*asked, local));
    }
    submitted = describe(requests);
  }
  happened(group,
           event::EnginesHeld{std::move(counts.published), std::move(counts.completed), asked,
                              std::move(submitted), group.member->reached(),
                              group.member->unanswered(), group.member->segments_passed()},
           now);
}

// Commands -----------------------------------------------------------------

void Node::carry_out(JobGroup& group, const command::Prepare& prepare, control::Instant now) {
  group.job = prepare.job.id;
  group.descriptor = prepare.job;
  group.epoch = prepare.job.epoch;
  aggregated_.drop_all_of(group.job);
  try {
    group.member->attach(prepare.job, around_.kernels);
  } catch (const std::exception& error) {
    const std::string why = fmt::format("could not be attached to its engines: {}", error.what());
    for (unsigned local = 0; local < group.member->trainers(); ++local) {
      if (!group.member->stays(local)) continue;
      if (around_.channel != nullptr) {
        around_.channel->evict({server_, group.attempt, local}, GRADCUBE_EJOB, error.what());
      }
      leave({server_, group.attempt, local}, Departure::violation, why, now);
    }
    return;
  }
  happened(group, event::EnginesArmed{}, now);
}

void Node::carry_out(JobGroup& group, const command::Start&, control::Instant) {
  group.member->start();
}

void Node::carry_out(JobGroup& group, const command::Hold& hold, control::Instant now) {
  group.asked = hold.asked;
  group.member->hold();
  tell_counts(group, now);
}

void Node::carry_out(JobGroup& group, const command::Halt&, control::Instant now) {
  Member& member = *group.member;
  member.halt();
  happened(group, event::EnginesHalted{member.counts().completed}, now);
}

// The leader has made sure that all servers have completed what the cut lets pass, so that standing
// still takes nothing from them.
void Node::carry_out(JobGroup& group, const command::Reset& reset, control::Instant now) {
  group.epoch = reset.epoch;
  if (around_.halt_everywhere) around_.halt_everywhere(group.job, reset.epoch);
  // The trainer is told before its completions, and what it pushed to a hub, name the notice.
  const std::uint32_t number = ++group.notices;
  notify(group, make_failure(number, reset.cut.code, reset.cut.text));
  group.member->reset(reset.epoch, reset.cut, number);
  group.halted_up_to = reset.epoch;  // also where it was halted for good meanwhile: it works again
  happened(group, event::EnginesArmed{}, now);
}

void Node::carry_out(JobGroup& group, const command::Count&, control::Instant now) {
  const Member& member = *group.member;
  const LaneCounts counts = member.counts();
  const unsigned latest = member.latest();
  const std::int32_t pid = member.has(latest) ? member.trainer(latest).pid : 0;
  happened(group, event::Counted{0, pid, counts.published, counts.completed}, now);
}

void Node::carry_out(JobGroup& group, const command::Note& note, control::Instant) {
  group.departures.note(note.departure);
  group.member->note(note.departure);
}

void Node::carry_out(JobGroup& group, const command::Detach&, control::Instant) {
  // What was in flight fails here, and so it does everywhere: the job has ended.
  if (group.member->attached()) {
    if (group.member->session().anything_in_flight()) halt_for_good(group);
    group.member->detach();
  }
  if (group.member->ended()) group.member->fail_submissions();
}

// Its frames may refer to memory of trainers whom other servers' engines still work for.
void Node::halt_for_good(JobGroup& group) {
  constexpr auto kLast = std::numeric_limits<control::Epoch>::max();
  if (around_.halt_everywhere) return around_.halt_everywhere(group.job, kLast);
  group.member->halt();
}

void Node::halt(protocol::JobId job, control::Epoch epoch) {
  for (auto& [attempt, group] : groups_) {
    const bool is_meant = group.job == job && group.epoch < epoch && group.halted_up_to < epoch;
    if (!is_meant || !group.member->attached()) continue;
    group.halted_up_to = epoch;  // once for the resets of all
    group.member->halt();
  }
  aggregated_.halt(job, epoch);
}

// Notices ------------------------------------------------------------------

void Node::tell(JobGroup& group, const notice::Joined& joined, control::Instant) {
  group.job = joined.job;
  group.member->admit(joined.rank, joined.size);
  admit_untold();
}

// Also those that have joined their server's others since these were admitted.
void Node::admit_untold() {
  if (around_.channel == nullptr) return;
  for (auto& [attempt, group] : groups_) {
    if (!group.member->admitted() || group.member->ended()) continue;
    for (const unsigned local : group.member->untold()) {
      around_.channel->admit({server_, group.attempt, local}, group.member->tell(local));
    }
  }
}

void Node::refuse(JobGroup& group, const std::string& why) {
  for (unsigned local = 0; local < group.member->trainers(); ++local) {
    if (!group.member->stays(local)) continue;
    group.member->leave(local);
    if (around_.channel != nullptr) {
      around_.channel->refuse({server_, group.attempt, local}, GRADCUBE_EJOB, why);
    }
  }
  group.gone = true;
}

void Node::tell(JobGroup& group, const notice::Refused& refused, control::Instant now) {
  if (group.member->admitted()) {
    // The job that took it has gone; the one of the same name that there is now does not.
    return tell(group, notice::Ended{refused.text, std::nullopt}, now);
  }
  refuse(group, refused.text);
}

// The trainer was told when its engines were reset.
void Node::tell(JobGroup& group, const notice::Failed& failed, control::Instant) {
  const auto& members = group.member->request().options.members;
  // The log of the leader's daemon has it.
  if (members.front() == server_) record(failed.cut.text);
}

void Node::tell(JobGroup& group, const notice::Ended& ended, control::Instant) {
  Member& member = *group.member;
  if (!member.admitted()) return refuse(group, end_text(group, ended));
  const control::JobAgent* agent = jobs_.agent(group.attempt);
  const bool in_order = agent != nullptr && agent->ends_in_order();
  if (!in_order || member.anything_outstanding()) record_abort(group, ended.why);
  const std::uint32_t number = ++group.notices;
  group.why_ended = ended.why;
  const std::string text = end_text(group, ended);
  member.end(number);
  notify(group, make_failure(number, GRADCUBE_EPEER, text));
  if (!member.attached()) member.fail_submissions();
}

// Every reason names the job; what has begun has a last collective, or its hub a last step.
std::string Node::end_text(const JobGroup& group, const notice::Ended& ended) {
  const std::string& name = group.member->request().name;
  std::string text = ended.why;
  if (text.find(name) == std::string::npos)
    text = fmt::format("job \"{}\" has ended: {}", name, text);
  if (!group.descriptor.has_value()) return text;
  const std::string of_hub = group.member->hub().progress_text();
  return text + (of_hub.empty() ? describe_common(ended.common) : of_hub);
}

void Node::tell(JobGroup& group, const notice::Report& report, control::Instant now) {
  const control::JoinRequest& request = group.member->request();
  const auto facts = peer_facts(group, report, now);
  for (const auto& [local, asked] : std::exchange(group.asking, {})) {
    std::string text = report.missing;
    if (text.empty()) {
      text = control::explain_wait(request.name, request.options.lanes.size(), facts, asked.second,
                                   around_.timing.greetings.silent_after / 2, space(),
                                   request.options.trainers,
                                   [this](bcube::ServerId server) { return ports_say(server); });
      // It is the reason for leaving if the trainer gives up waiting now.
      group.last_report = text;
    }
    notify(group, local, make_report(asked.first, text));
  }
}

// Of a server of another process, what is heard at this end is all that is known.
std::string Node::ports_say(bcube::ServerId server) const {
  if (!around_.ports_say) return "";
  const std::string there = around_.ports_say(server);
  return there.empty() ? around_.ports_say(server_) : there;
}

std::vector<control::PeerFacts> Node::peer_facts(const JobGroup& group,
                                                 const notice::Report& report,
                                                 control::Instant now) const {
  std::vector<control::PeerFacts> peers;
  // Of servers elsewhere nobody here knows it: then this server alone would be named.
  const bool knows_all =
      around_.cut_off &&
      std::ranges::all_of(report.members, [this](const control::MemberStanding& member) {
        return around_.here.contains(member.server);
      });
  for (const control::MemberStanding& standing : report.members) {
    control::PeerFacts& peer = peers.emplace_back();
    peer.standing = standing;
    peer.no_way = !engines_->reaches(standing.server);
    peer.cut_off = knows_all && around_.cut_off(standing.server);
    // Only those that are greeted would have been heard.
    const auto heard = greetings_.last_heard(standing.server);
    if (heard.has_value() && greetings_.greets(standing.server)) peer.since_heard = now - *heard;
    const auto before = group.since.find(standing.server);
    if (before == group.since.end()) continue;
    const NeighbourNumbers numbers = neighbour(standing.server);
    peer.resent = numbers.resent - before->second.resent;
    peer.acknowledged = numbers.acknowledged - before->second.acknowledged;
  }
  return peers;
}

}  // namespace gradcube::dataplane
