#include "control/jobs/machines/job_agent.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

namespace gradcube::control {

JobAgent::JobAgent(JobEnd self, const JoinRequest& request, TransportFacts transport,
                   const bcube::AddressSpace& space, const JobTiming& timing, Instant now)
    : self_(self),
      request_(request),
      transport_(transport),
      space_(space),
      timing_(timing),
      leader_{request.options.members.front(), 0, 0},
      next_repeat_(now),
      exchange_(self.server, {request.options.members.begin(), request.options.members.end()}) {
  phase_deadline_ = now + timing_.phase;
}

const JobMember* JobAgent::member(bcube::ServerId server) const {
  for (const JobMember& member : descriptor_.members) {
    if (member.server == server) return &member;
  }
  return nullptr;
}

void JobAgent::on_message(const JobMessage& message, Turn turn) {
  if (phase_ == Phase::over) return;
  // While it joins, the id may change: the job that admitted the trainer can end without it.
  const bool of_this_job = descriptor_.id == protocol::kNoJob || message.job == descriptor_.id ||
                           message.job == protocol::kNoJob;
  if (!of_this_job || !is_heeded(message)) return;
  std::visit([&](const auto& body) { handle(message, body, turn); }, message.body);
}

// The leader says what is to be done. Agents of the job tell each other how it ends and how far
// they have come. Nobody else is heeded.
bool JobAgent::is_heeded(const JobMessage& message) const {
  if (message.from.attempt == 0) return message.from.server == leader_server();
  const JobMember* sender = member(message.from.server);
  if (sender == nullptr || sender->attempt != message.from.attempt) return false;
  const JobBody& body = message.body;
  return std::holds_alternative<Abort>(body) || std::holds_alternative<Unknown>(body) ||
         std::holds_alternative<Ask>(body) || std::holds_alternative<Counts>(body);
}

void JobAgent::handle(const JobMessage& message, const Pending& pending, Turn turn) {
  if (phase_ != Phase::joining) return;
  leader_ = message.from;
  missing_ = pending.missing;
  if (leaving_.empty()) phase_deadline_ = turn.now + 2 * timing_.phase;
  if (message.job != protocol::kNoJob) admit(message.job, turn.out);
  // Other trainers may take long.
  if (admitted() && leaving_.empty()) next_repeat_ = turn.now + timing_.ping;
  if (inquiry_.has_value()) report(missing_, turn.out);
}

// Only the first time is the trainer told. Its place is known here: the rank that it wished for, or
// that of its server among the members.
void JobAgent::admit(JobId job, JobActions& out) {
  if (admitted()) {
    job_ = job;
    return;
  }
  const auto& servers = request_.options.members;
  const auto place = std::ranges::find(servers, self_.server) - servers.begin();
  tell(notice::Joined{job, request_.rank.value_or(static_cast<std::uint32_t>(place)),
                      static_cast<std::uint32_t>(servers.size())},
       out);
  job_ = job;
}

void JobAgent::handle(const JobMessage&, const Refused& refused, Turn turn) {
  if (phase_ != Phase::joining) return;
  if (inquiry_.has_value()) report(refused.text, turn.out);
  if (!deserted_) tell(notice::Refused{refused.text}, turn.out);
  enter(Phase::over, turn.now);
}

void JobAgent::handle(const JobMessage& message, const Prepare& prepare, Turn turn) {
  if (phase_ != Phase::joining) {
    if (phase_ != Phase::preparing && !is_ending()) answer(Armed{prepare.job.epoch}, turn.out);
    return;
  }
  if (!is_what_was_asked_for(prepare.job)) return;
  JobDescriptor job = prepare.job;
  const LaneNumbers none(job.options.lanes.size(), 0);
  event::EnginesHeld counts{none, none, std::nullopt, ""};
  admit(job.id, turn.out);
  order(command::Prepare{job}, turn.out);
  leader_ = message.from;
  descriptor_ = std::move(job);
  epoch_ = descriptor_.epoch;
  counts_ = std::move(counts);
  enter(Phase::preparing, turn.now);
  if (aborted_) return begin_abort(leaving_.front().leave.how, turn);
  if (!inquiry_.has_value()) return;
  next_inquiry_ = turn.now + timing_.repeat;
  ask_members(turn.out);
}

// A leader is not trusted more than any other sender.
bool JobAgent::is_what_was_asked_for(const JobDescriptor& job) const {
  if (job.name != request_.name || job.options != request_.options ||
      job.members.size() != request_.options.members.size() ||
      trainers_ != request_.options.trainers) {
    return false;
  }
  std::set<std::uint32_t> ranks;
  for (std::size_t i = 0; i < job.members.size(); ++i) {
    const JobMember& member = job.members[i];
    if (member.server != request_.options.members[i] || member.rank >= job.members.size()) {
      return false;
    }
    if (member.server == self_.server && member.attempt != self_.attempt) return false;
    ranks.insert(member.rank);
  }
  return ranks.size() == job.members.size();
}

void JobAgent::handle(const JobMessage&, const control::Start& start, Turn turn) {
  if (is_ending()) return;
  if (phase_ == Phase::armed && start.epoch == epoch_) {
    order(command::Start{epoch_}, turn.out);
    enter(Phase::running, turn.now);
  }
  const bool has_started = phase_ == Phase::running || phase_ == Phase::holding ||
                           phase_ == Phase::held || start.epoch < epoch_;
  if (has_started && start.epoch <= epoch_) answer(Started{start.epoch}, turn.out);
}

void JobAgent::handle(const JobMessage&, const Hold& hold, Turn turn) {
  const bool begins = phase_ == Phase::running;
  const bool goes_on = phase_ == Phase::holding || phase_ == Phase::held;
  if (hold.epoch != epoch_) return;
  if (goes_on) phase_deadline_ = turn.now + longest_stop();  // the leader waits on
  if (begins || (goes_on && asks_anew(hold))) {
    why_ = hold.why;
    order(command::Hold{hold.asked}, turn.out);
    asked_ = hold.asked;
    if (begins) enter(Phase::holding, turn.now);
    if (inquiry_.has_value()) report(stopping_text(), turn.out);
  } else if (phase_ == Phase::held) {
    answer(held(), turn.out);
  }
}

// A Hold that others have overtaken does not: what is asked for comes ever earlier.
bool JobAgent::asks_anew(const Hold& hold) const {
  return hold.asked.has_value() && (!asked_.has_value() || hold.asked->number < asked_->number);
}

void JobAgent::handle(const JobMessage&, const control::Reset& reset, Turn turn) {
  const std::size_t lanes = descriptor_.options.lanes.size();
  const bool fits = reset.cut.done.size() == lanes && reset.cut.failed.size() == lanes;
  if (phase_ == Phase::held && reset.epoch == epoch_ + 1 && fits) {
    tell(notice::Failed{reset.cut}, turn.out);
    order(command::Reset{reset.epoch, reset.cut}, turn.out);
    epoch_ = reset.epoch;
    disagreements_.clear();
    enter(Phase::resetting, turn.now);
  } else if (reset.epoch == epoch_ && phase_ != Phase::resetting && !is_ending()) {
    answer(Armed{epoch_}, turn.out);
  }
}

void JobAgent::handle(const JobMessage& message, const Abort& abort, Turn turn) {
  const bool from_leader = message.from.attempt == 0;
  if (phase_ == Phase::joining) {
    // Nothing has begun here: there is nothing to agree on.
    leader_ = message.from;
    why_ = abort.why;
    end(std::nullopt, turn);
    return;
  }
  const bool heeded = !exchange_.gone().contains(message.from.server);
  const bool decides_all_lanes =
      abort.common.has_value() && abort.common->size() == descriptor_.options.lanes.size();
  // The leader tells its decision to all: the members need not tell each other.
  const bool decides = from_leader && heeded && decides_all_lanes;
  leader_tells_ = leader_tells_ || decides;
  if (!is_ending()) begin_abort(abort.why, turn);
  if (from_leader) {
    if (heeded) {
      for (const bcube::ServerId server : abort.gone) exchange_.give_up(server);
      if (decides) exchange_.decide(*abort.common);
    }
    if (phase_ >= Phase::aborting) answer(exchange_.message(why_), turn.out);
  } else {
    // A decision about lanes that the job does not have is none.
    if (abort.common.has_value() && !decides_all_lanes) return;
    exchange_.on_abort(message.from.server, abort);
    const bool waits = !abort.common.has_value() && !abort.withdrawn;
    if (phase_ == Phase::ended && waits) send(message.from, exchange_.message(why_), turn.out);
  }
  end_if_decided(turn);
}

void JobAgent::handle(const JobMessage& message, const Unknown&, Turn turn) {
  if (phase_ == Phase::joining) {
    // Of a Leave: the leader has never heard of this trainer, or has forgotten it.
    if (!leaving_.empty()) leave_alone(turn);
    return;
  }
  if (is_ending()) {
    if (message.from.attempt != 0) exchange_.give_up(message.from.server);
    end_if_decided(turn);
    return;
  }
  begin_abort(fmt::format("the daemon on server {} has no such job any more",
                          space_.text(message.from.server)),
              turn);
}

void JobAgent::on_event(const JobEvent& event, Turn turn) {
  if (phase_ == Phase::over) return;
  std::visit([&](const auto& happened) { on(happened, turn); }, event);
}

void JobAgent::on(const event::EnginesArmed&, Turn turn) {
  if (phase_ != Phase::preparing && phase_ != Phase::resetting) return;
  enter(Phase::armed, turn.now);
  answer(Armed{epoch_}, turn.out);
}

void JobAgent::on(const event::EnginesHeld& counts, Turn turn) {
  if (phase_ != Phase::holding && phase_ != Phase::held) return;
  event::EnginesHeld taken = counts;
  counts_ = std::move(taken);
  if (phase_ == Phase::holding) enter(Phase::held, turn.now);
  answer(held(), turn.out);
}

void JobAgent::on(const event::EnginesHalted& halted, Turn turn) {
  if (phase_ != Phase::aborting) return;
  exchange_.set_completed(halted.completed);
  tell_abort(turn.out);
  end_if_decided(turn);
}

void JobAgent::on(const event::Disagreed& disagreed, Turn turn) {
  const bool may_be = phase_ == Phase::running || phase_ == Phase::holding || phase_ == Phase::held;
  if (!may_be || disagreed.epoch != epoch_) return;
  const auto [known, fresh] = disagreements_.try_emplace(disagreed.what.lane, disagreed.what);
  if (!fresh && known->second.collective > disagreed.what.collective) {
    known->second = disagreed.what;
  } else if (!fresh) {
    return;
  }
  if (phase_ == Phase::running) answer(Disagree{epoch_, disagreed.what}, turn.out);
  if (phase_ == Phase::held) answer(held(), turn.out);
}

void JobAgent::on(const event::TrainerJoined&, Turn turn) {
  ++trainers_;
  if (phase_ != Phase::joining || !leaving_.empty()) return;
  repeat(turn.out);
  next_repeat_ = turn.now + interval();
}

void JobAgent::on(const event::TrainerLeft& left, Turn turn) {
  trainer_gone_ = true;
  deserted_ = !left.others_stay;
  if (is_ending()) return;
  if (phase_ == Phase::joining && leaving_.empty()) phase_deadline_ = turn.now + timing_.phase;
  std::erase_if(leaving_, [&](const Leaving& each) { return each.leave.local == left.local; });
  leaving_.push_back({{left.how, left.died, left.local, left.submitted}, left.settled});
  tell_leaving(turn.out);
}

// While it joins, one is enough: nothing begins without it.
void JobAgent::tell_leaving(JobActions& out) const {
  for (const Leaving& each : leaving_) {
    if (phase_ == Phase::joining) return answer(leaving_.front().leave, out);
    if (each.settled) answer(each.leave, out);
  }
}

void JobAgent::handle(const JobMessage&, const Left& left, Turn turn) {
  if (phase_ == Phase::joining || is_ending() || left.first > departures_) return;
  for (std::size_t i = departures_ - left.first; i < left.departures.size(); ++i) {
    const Departure& departure = left.departures[i];
    const JobMember* of = member(departure.server);
    const bool fits = of != nullptr && departure.local < descriptor_.options.trainers &&
                      departure.submitted.size() == descriptor_.options.lanes.size();
    if (fits) order(command::Note{departure}, turn.out);
    ++departures_;
    if (fits && departure.server == self_.server) {
      std::erase_if(leaving_, [&](const Leaving& each) {
        return each.leave.local == departure.local && each.leave.submitted.has_value();
      });
    }
  }
  answer(Noted{departures_}, turn.out);
}

void JobAgent::on(const event::TrainerAborted& aborted, Turn turn) {
  trainer_gone_ = true;
  deserted_ = !aborted.others_stay;
  if (is_ending()) return;
  if (phase_ == Phase::joining) {
    aborted_ = true;
    on(event::TrainerLeft{aborted.how, false, aborted.others_stay}, turn);
  } else {
    begin_abort(aborted.how, turn);
  }
}

// Of a job that never was: those of the server's trainers that stay are told.
void JobAgent::leave_alone(Turn turn) {
  if (deserted_) return enter(Phase::over, turn.now);
  why_ = leaving_.front().leave.how;
  end(std::nullopt, turn);
}

bool JobAgent::counts_on_another(bcube::ServerId server, Incarnation incarnation) const {
  if (phase_ != Phase::joining) {
    const JobMember* known = member(server);
    return known != nullptr && known->incarnation != incarnation;
  }
  return server == leader_server() && leader_.incarnation != 0 &&
         leader_.incarnation != incarnation;
}

void JobAgent::on_server_gone(bcube::ServerId server, const std::string& why, Turn turn) {
  const auto& members = request_.options.members;
  if (over() || std::ranges::find(members, server) == members.end()) return;
  if (phase_ == Phase::joining) {
    // A leader that it has not heard of yet has until the deadline to answer.
    if (server != leader_server() || leader_.incarnation == 0) return;
    why_ = why;
    end(std::nullopt, turn);
    return;
  }
  if (!is_ending()) begin_abort(why, turn);
  exchange_.give_up(server);
  end_if_decided(turn);
}

// The members of one side of a partition, and no others, can agree: whoever tells nothing by the
// deadline is given up. If that does not help either, the decision stays unknown.
void JobAgent::miss_deadline(Turn turn) {
  if (phase_ == Phase::ended) {
    enter(Phase::over, turn.now);
  } else if (phase_ == Phase::joining && !leaving_.empty()) {
    leave_alone(turn);
  } else if (phase_ == Phase::joining) {
    why_ = fmt::format("the daemon on server {} does not answer", space_.text(leader_server()));
    end(std::nullopt, turn);
  } else if (phase_ == Phase::aborting) {
    const auto silent = exchange_.silent();
    for (const bcube::ServerId server : silent) exchange_.give_up(server);
    if (++decide_rounds_ == 2) exchange_.withdraw();
    phase_deadline_ = turn.now + timing_.decide;
    end_if_decided(turn);
  } else {
    begin_abort(fmt::format("the daemon on server {} does not go on with the job",
                            space_.text(leader_server())),
                turn);
  }
}

void JobAgent::on_time(Turn turn) {
  if (over()) return;
  if (phase_deadline_.has_value() && turn.now >= *phase_deadline_) miss_deadline(turn);
  pursue_inquiry(turn);
  if (over() || turn.now < next_repeat_) return;
  repeat(turn.out);
  next_repeat_ = turn.now + interval();
}

std::optional<Instant> JobAgent::deadline() const {
  if (over()) return std::nullopt;
  Instant first = std::min(next_repeat_, phase_deadline_.value_or(next_repeat_));
  if (inquiry_.has_value()) first = std::min({first, next_inquiry_, inquiry_->deadline});
  return first;
}

}  // namespace gradcube::control
