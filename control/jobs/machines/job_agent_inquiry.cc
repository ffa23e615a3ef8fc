// How an agent finds out for its trainer why a collective is not done, and how it answers when
// another agent does.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "control/jobs/machines/job_agent.h"

namespace gradcube::control {

std::string JobAgent::ending_text() const {
  return fmt::format("job \"{}\" is ending: {}", request_.name, why_);
}

std::string JobAgent::stopping_text() const {
  return fmt::format("job \"{}\" is stopping: {}", request_.name, why_);
}

void JobAgent::on(const event::Asked& asked, Turn turn) {
  inquiry_.emplace(Inquiry{{asked.inquiry, asked.collective, "", {}}, turn.now + timing_.answer});
  if (is_ending()) {
    report(ending_text(), turn.out);
  } else if (phase_ == Phase::joining) {
    if (leaving_.empty()) repeat(turn.out);
    next_inquiry_ = inquiry_->deadline;
  } else if (stopping()) {
    report(stopping_text(), turn.out);
  } else {
    ask_members(turn.out);
    next_inquiry_ = turn.now + timing_.repeat;
  }
}

// Those that have not answered yet. This server's own counts come from its engines' side.
void JobAgent::ask_members(JobActions& out) {
  notice::Report& known = inquiry_->report;
  if (known.members.empty()) {
    const LaneNumbers none(descriptor_.options.lanes.size(), 0);
    for (const JobMember& member : descriptor_.members) {
      known.members.push_back({member.server, 0, false, none, none});
    }
  }
  for (const MemberStanding& standing : known.members) {
    if (standing.answered) continue;
    const JobMember* to = member(standing.server);
    if (standing.server == self_.server) {
      count(out);
    } else if (to != nullptr) {
      send({standing.server, to->incarnation, to->attempt}, Ask{known.inquiry}, out);
    }
  }
}

void JobAgent::count(JobActions& out) {
  if (!std::exchange(counting_, true)) order(command::Count{}, out);
}

void JobAgent::handle(const JobMessage& message, const Ask&, Turn turn) {
  if (is_ending()) {
    send(message.from, exchange_.message(why_), turn.out);
    return;
  }
  askers_[{message.from.server, message.from.attempt}] = message;
  count(turn.out);
}

void JobAgent::on(const event::Counted& counted, Turn turn) {
  if (!std::exchange(counting_, false)) return;
  Counts counts = counted;
  if (counts.pid == 0) counts.pid = request_.trainer.pid;
  for (const auto& [asker, message] : std::exchange(askers_, {})) {
    counts.inquiry = std::get<Ask>(message.body).inquiry;
    if (!is_ending()) send(message.from, counts, turn.out);
  }
  if (!inquiry_.has_value()) return;
  counts.inquiry = inquiry_->report.inquiry;
  take_counts(self_.server, counts, turn);
}

void JobAgent::handle(const JobMessage& message, const Counts& counts, Turn turn) {
  take_counts(message.from.server, counts, turn);
}

// Of another inquiry, of a stranger: nothing happens.
void JobAgent::take_counts(bcube::ServerId server, const Counts& counts, Turn turn) {
  if (!inquiry_.has_value() || counts.inquiry != inquiry_->report.inquiry) return;
  std::vector<MemberStanding>& members = inquiry_->report.members;
  for (MemberStanding& member : members) {
    if (member.server != server) continue;
    const std::size_t lanes = member.published.size();
    member = {server, counts.pid, true, counts.published, counts.completed};
    member.published.resize(lanes);
    member.completed.resize(lanes);
  }
  const bool complete = !members.empty() && std::ranges::all_of(members, &MemberStanding::answered);
  if (complete) report("", turn.out);
}

void JobAgent::report(const std::string& missing, JobActions& out) {
  notice::Report known = std::exchange(inquiry_, std::nullopt)->report;
  known.missing = missing;
  if (!missing.empty()) known.members.clear();
  if (!deserted_) tell(std::move(known), out);
}

void JobAgent::pursue_inquiry(Turn turn) {
  if (!inquiry_.has_value()) return;
  if (turn.now >= inquiry_->deadline) {
    const std::string unanswered =
        fmt::format("the daemon on server {} has not answered yet", space_.text(leader_server()));
    const std::string& known = missing_.empty() ? unanswered : missing_;
    report(inquiry_->report.members.empty() ? known : "", turn.out);
  } else if (!inquiry_->report.members.empty() && turn.now >= next_inquiry_) {
    ask_members(turn.out);
    next_inquiry_ = turn.now + timing_.repeat;
  }
}

}  // namespace gradcube::control
