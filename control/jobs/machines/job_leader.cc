#include "control/jobs/machines/job_leader.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

namespace gradcube::control {
namespace {

constexpr int kMissedPings = 4;

}  // namespace

JobLeader::JobLeader(JobEnd self, JobId id, const std::string& name, const JobOptions& options,
                     const bcube::AddressSpace& space, const JobTiming& timing, JobOwner owner)
    : self_(self),
      id_(id),
      name_(name),
      owner_(owner),
      options_(options),
      space_(space),
      timing_(timing) {
  for (const bcube::ServerId server : options_.members) {
    Member member;
    member.server = server;
    member.rank = static_cast<std::uint32_t>(members_.size());
    members_.push_back(member);
  }
}

JobLeader::Member* JobLeader::find(bcube::ServerId server) {
  for (Member& member : members_) {
    if (member.server == server) return &member;
  }
  return nullptr;
}

bool JobLeader::counts_on_another(bcube::ServerId server, Incarnation incarnation) const {
  return std::ranges::any_of(members_, [&](const Member& member) {
    return member.server == server && member.agent.has_value() &&
           member.agent->incarnation != incarnation;
  });
}

bool JobLeader::has(const JobEnd& agent) const {
  return std::ranges::any_of(members_, [&](const Member& member) { return member.agent == agent; });
}

std::vector<JobEnd> JobLeader::agents() const {
  std::vector<JobEnd> agents;
  for (const Member& member : members_) {
    if (member.agent.has_value()) agents.push_back(*member.agent);
  }
  return agents;
}

void JobLeader::on_message(const JobMessage& message, Turn turn) {
  if (over()) return;
  Member* member = find(message.from.server);
  const bool is_of_anyone =
      std::holds_alternative<Join>(message.body) || std::holds_alternative<Elsewhere>(message.body);
  if (!is_of_anyone && (member == nullptr || member->agent != message.from)) return;
  if (member != nullptr && member->agent == message.from) member->heard = turn.now;
  std::visit([&](const auto& body) { handle(member, message, body, turn); }, message.body);
}

void JobLeader::handle(Member* member, const JobMessage&, const Armed& armed, Turn turn) {
  const bool awaited = phase_ == Phase::preparing || phase_ == Phase::resetting;
  if (awaited && armed.epoch == epoch_) answered(*member, turn);
}

void JobLeader::handle(Member* member, const JobMessage&, const Started& started, Turn turn) {
  if (phase_ == Phase::starting && started.epoch == epoch_) answered(*member, turn);
}

void JobLeader::handle(Member*, const JobMessage&, const Disagree& disagree, Turn turn) {
  if (disagree.epoch != epoch_ || !is_possible(disagree.what)) return;
  if (phase_ == Phase::running) {
    begin_catching_up(disagree.what, turn);
  } else if (phase_ == Phase::catching_up) {
    note_failing(disagree.what);
    end_catching_up_if_all_have(turn);
  }
}

void JobLeader::handle(Member* member, const JobMessage& message, const Leave& leave, Turn turn) {
  if (phase_ == Phase::gathering) end(leave.how, {}, turn);
  const bool has_begun = phase_ == Phase::running || phase_ == Phase::catching_up;
  if (has_begun && goes_on_without(member->server, leave)) {
    note(member->server, leave, turn.now);
  } else if (phase_ == Phase::running) {
    stop(std::nullopt, leave, turn);
  } else if (phase_ == Phase::catching_up) {
    member->is_missed = true;
  }
  if (phase_ == Phase::stopping && departure_.has_value() && leave.died) {
    phase_deadline_ = std::min(*phase_deadline_, turn.now + timing_.run_on_after_death);
  }
  if (phase_ == Phase::catching_up) end_catching_up_if_all_have(turn);
  if (phase_ == Phase::ending) send(message.from, request(), turn.out);
}

void JobLeader::handle(Member* member, const JobMessage&, const Abort& abort, Turn turn) {
  if (phase_ != Phase::ending) {
    // Not its decision: an agent heeds the decisions of members that it counts, and of no others.
    end(abort.why, {abort.gone.begin(), abort.gone.end()}, turn);
  }
  if (!over()) answered(*member, turn);
}

void JobLeader::handle(Member* member, const JobMessage& message, const Unknown&, Turn turn) {
  if (phase_ == Phase::gathering) {
    leave_out(*member);
    return;
  }
  if (phase_ != Phase::ending) {
    end(fmt::format("the daemon on server {} has no trainer of job \"{}\" any more",
                    space_.text(message.from.server), name_),
        {message.from.server}, turn);
  }
  if (!over()) answered(*member, turn);
}

void JobLeader::on_server_gone(bcube::ServerId server, const std::string& why, Turn turn) {
  Member* member = find(server);
  if (over() || member == nullptr || !member->agent.has_value()) return;
  if (phase_ != Phase::ending) end(why, {server}, turn);
  if (!over()) answered(*member, turn);
}

bool JobLeader::all_answered() const {
  return std::ranges::all_of(
      members_, [](const Member& member) { return member.answered || !member.agent.has_value(); });
}

void JobLeader::answered(Member& member, Turn turn) {
  const bool is_new = !std::exchange(member.answered, true);
  const bool of_engines =
      phase_ == Phase::preparing || phase_ == Phase::resetting || phase_ == Phase::starting;
  // A process that does this for many servers or jobs does it for one after the other.
  if (is_new && of_engines) phase_deadline_ = turn.now + longest(phase_);
  if (!all_answered()) return;
  if (phase_ == Phase::preparing || phase_ == Phase::resetting) {
    enter(Phase::starting, turn);
  } else if (phase_ == Phase::starting) {
    enter(Phase::running, turn);
  } else if (phase_ == Phase::ending) {
    enter(Phase::over, turn);
  }
}

void JobLeader::enter(Phase phase, Turn turn) {
  phase_ = phase;
  phase_deadline_.reset();
  next_ask_ = turn.now;
  if (phase == Phase::running || phase == Phase::over) return;
  for (Member& member : members_) member.answered = false;
  phase_deadline_ = turn.now + longest(phase);
  asked_all_ = turn.now;
  next_ask_ = turn.now + timing_.repeat;
  ask(turn.out);
}

Instant JobLeader::longest(Phase phase) const {
  if (phase == Phase::catching_up) return timing_.catch_up;
  if (phase != Phase::stopping) return timing_.phase;
  const bool after_death = departure_.has_value() && departure_->died;
  return after_death ? timing_.run_on_after_death : timing_.run_on;
}

void JobLeader::ask(JobActions& out) const {
  const JobBody body = request();
  for (const Member& member : members_) {
    if (!member.answered && member.agent.has_value()) send(*member.agent, body, out);
  }
}

JobBody JobLeader::request() const {
  switch (phase_) {
    case Phase::preparing:
      return Prepare{descriptor()};
    case Phase::starting:
      return Start{epoch_};
    case Phase::catching_up:
      return Ask{};
    case Phase::stopping:
      return Hold{epoch_, why_it_stops(), asked()};
    case Phase::resetting:
      return Reset{epoch_, cut_};
    case Phase::ending:
      return Abort{why_, {gone_.begin(), gone_.end()}, std::nullopt, common_, false};
    case Phase::gathering:
    case Phase::running:
    case Phase::over:
      break;
  }
  return Pending{missing()};
}

void JobLeader::end(const std::string& why, std::set<bcube::ServerId> gone, Turn turn) {
  why_ = why;
  gone_ = std::move(gone);
  enter(Phase::ending, turn);
}

// Which servers have kept this phase from ending.
std::string JobLeader::overdue() const {
  std::vector<std::string> servers;
  for (const Member& member : members_) {
    if (member.answered || !member.agent.has_value()) continue;
    if (phase_ == Phase::stopping && has_told(member)) continue;
    servers.push_back(space_.text(member.server));
  }
  if (servers.empty()) return overdue_collective();
  const bool one = servers.size() == 1;
  return fmt::format("the {} {} {} not answer for job \"{}\"",
                     one ? "daemon on server" : "daemons on servers", fmt::join(servers, ", "),
                     one ? "does" : "do", name_);
}

void JobLeader::on_time(Turn turn) {
  if (over()) return;
  if (phase_ == Phase::running) {
    if (turn.now < next_ask_) return;
    for (const Member& member : members_) {
      tell_departures(member, turn.out);
      seek_sign_of(member, turn);
    }
    next_ask_ = turn.now + (any_lacks_departures() ? timing_.repeat : timing_.ping);
  } else if (phase_deadline_.has_value() && turn.now >= *phase_deadline_) {
    if (phase_ == Phase::ending) {
      enter(Phase::over, turn);
    } else if (phase_ == Phase::catching_up) {
      stop(first_, std::nullopt, turn);
    } else {
      // A departure stays the reason: the others only wait for the end of what was in flight.
      // So does a disagreement: but for it nobody would have stopped.
      end(departure_.has_value() ? departure_->how : reason_of_stop() + overdue(), {}, turn);
    }
  } else if (turn.now >= next_ask_) {
    // While it gathers: whether trainers that have joined are still there.
    if (phase_ == Phase::gathering) leave_out_silent(turn.now);
    if (over()) return;
    if (phase_ == Phase::gathering) seek_missing(turn);
    ask(turn.out);
    next_ask_ = turn.now + (phase_ == Phase::gathering ? timing_.ping : timing_.repeat);
  }
}

// An agent that runs tells so with each ping. Where it has ended the job, and its words were lost,
// its daemon answers that it knows of none.
void JobLeader::seek_sign_of(const Member& member, Turn turn) const {
  const bool is_silent = turn.now - member.heard > kMissedPings * timing_.ping;
  if (is_silent && member.agent.has_value()) send(*member.agent, Start{epoch_}, turn.out);
}

std::optional<Instant> JobLeader::deadline() const {
  if (over()) return std::nullopt;
  return std::min(next_ask_, phase_deadline_.value_or(next_ask_));
}

void JobLeader::send(const JobEnd& to, JobBody body, JobActions& out) const {
  out.emplace_back(JobMessage{self_, to, id_, name_, std::move(body), owner_});
}

}  // namespace gradcube::control
