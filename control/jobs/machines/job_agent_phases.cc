// How an agent goes from phase to phase, what it repeats in each, and how it ends.
#include <utility>

#include "control/jobs/machines/job_agent.h"

namespace gradcube::control {

void JobAgent::enter(Phase phase, Instant now) {
  phase_ = phase;
  phase_deadline_.reset();
  next_repeat_ = now + interval();
  switch (phase) {
    case Phase::joining:
    case Phase::running:  // the leader's silence and that of others end it
    case Phase::over:
      break;
    case Phase::preparing:
    case Phase::armed:
    case Phase::resetting:
      // The leader waits for others, at most as long; and then asks again.
      phase_deadline_ = now + 3 * timing_.phase;
      break;
    case Phase::holding:
    case Phase::held:
      phase_deadline_ = now + longest_stop();
      break;
    case Phase::aborting:
      phase_deadline_ = now + timing_.decide;
      break;
    case Phase::ended:
      phase_deadline_ = now + timing_.linger;
      break;
  }
}

Instant JobAgent::interval() const {
  const bool is_running = phase_ == Phase::running;
  const bool asks = is_running && (!leaving_.empty() || !disagreements_.empty());
  const bool waits = (is_running && !asks) || phase_ == Phase::held;
  return waits ? timing_.ping : timing_.repeat;
}

void JobAgent::repeat(JobActions& out) const {
  switch (phase_) {
    case Phase::joining:
      if (!leaving_.empty()) {
        tell_leaving(out);
      } else {
        answer(Join{request_.trainer, request_.options, request_.rank, transport_, trainers_}, out);
      }
      break;
    case Phase::running:
      answer(Started{epoch_}, out);
      for (const auto& [lane, what] : disagreements_) answer(Disagree{epoch_, what}, out);
      tell_leaving(out);
      break;
    case Phase::held:
      // Segments pass though nothing ends: the leader waits for that.
      order(command::Hold{asked_}, out);
      break;
    case Phase::aborting:
    case Phase::ended:
      tell_abort(out);
      break;
    default:  // the leader asks
      break;
  }
}

// To members that have not decided yet, and to the leader: it ends with the first that it hears.
void JobAgent::tell_abort(JobActions& out) const {
  if (leader_tells_ && phase_ != Phase::aborting) return;
  const Abort abort = exchange_.message(why_);
  if (phase_ == Phase::aborting) answer(abort, out);
  if (leader_tells_) return;
  for (const bcube::ServerId server : exchange_.undecided()) {
    const JobMember* to = member(server);
    if (to != nullptr) send({server, to->incarnation, to->attempt}, abort, out);
  }
}

void JobAgent::begin_abort(const std::string& why, Turn turn) {
  const bool has_begun = phase_ > Phase::armed || epoch_ > 0;
  why_ = why;
  if (inquiry_.has_value()) report(ending_text(), turn.out);
  // Before it aborts: the rest is repeated in time, and where there is no memory for this, so is
  // what it aborts for.
  order(command::Halt{}, turn.out);
  enter(Phase::aborting, turn.now);
  // Without this server's frames nothing can have completed anywhere.
  if (!has_begun) exchange_.decide(LaneNumbers(descriptor_.options.lanes.size(), 0));
  tell_abort(turn.out);
  end_if_decided(turn);
}

void JobAgent::end_if_decided(Turn turn) {
  if (phase_ == Phase::aborting && exchange_.over()) {
    tell_abort(turn.out);
    end(exchange_.common(), turn);
  }
  // Who was told by the leader stays a while, to answer members that the leader does not reach.
  if (phase_ == Phase::ended && !leader_tells_ && exchange_.undecided().empty()) {
    enter(Phase::over, turn.now);
  }
}

void JobAgent::end(std::optional<LaneNumbers> common, Turn turn) {
  const bool was_attached = phase_ != Phase::joining;
  if (inquiry_.has_value()) report(ending_text(), turn.out);
  if (!deserted_) tell(notice::Ended{why_, std::move(common)}, turn.out);
  if (was_attached) {
    order(command::Detach{}, turn.out);
    enter(Phase::ended, turn.now);
  } else {
    if (leader_.incarnation != 0) answer(exchange_.message(why_), turn.out);
    enter(Phase::over, turn.now);
  }
}

Held JobAgent::held() const {
  const LaneNumbers& reached = counts_.reached.empty() ? counts_.published : counts_.reached;
  Held held{epoch_, counts_.published, counts_.completed, {}, counts_.asked, counts_.submitted,
            reached};
  held.unanswered = counts_.unanswered;
  held.segments = counts_.segments;
  for (const auto& [lane, what] : disagreements_) held.disagreements.push_back(what);
  return held;
}

void JobAgent::send(JobEnd to, JobBody body, JobActions& out) const {
  out.emplace_back(
      JobMessage{self_, to, descriptor_.id, request_.name, std::move(body), request_.owner});
}

void JobAgent::order(JobCommand command, JobActions& out) const {
  out.emplace_back(ToEngines{self_.attempt, std::move(command)});
}

void JobAgent::tell(JobNotice notice, JobActions& out) const {
  out.emplace_back(ToTrainer{self_.attempt, std::move(notice)});
}

}  // namespace gradcube::control
