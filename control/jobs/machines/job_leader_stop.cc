// How a leader stops a job and divides its collectives into those that complete on all members and
// those that fail on all.
#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "control/jobs/collective_text.h"
#include "control/jobs/machines/job_leader.h"

namespace gradcube::control {
namespace {

// Messages overtake each other; counts only grow. Whether one has.
bool take_greater(LaneNumbers& known, const LaneNumbers& told) {
  const LaneNumbers before = known;
  for (std::size_t lane = 0; lane < known.size() && lane < told.size(); ++lane) {
    known[lane] = std::max(known[lane], told[lane]);
  }
  return known != before;
}

}  // namespace

void JobLeader::begin_catching_up(const Disagreement& first, Turn turn) {
  first_ = first;
  failing_.clear();
  note_failing(first);
  for (Member& member : members_) {
    member.published.clear();
    member.is_missed = false;
  }
  enter(Phase::catching_up, turn);
  end_catching_up_if_all_have(turn);
}

// More of them may turn up while all catch up: in another lane, or earlier in the same.
void JobLeader::note_failing(const Disagreement& what) {
  if (what.lane == first_->lane && what.collective < first_->collective) first_ = what;
  const auto [known, fresh] = failing_.try_emplace(what.lane, what.collective);
  if (!fresh) known->second = std::min(known->second, what.collective);
}

void JobLeader::handle(Member* member, const JobMessage&, const Counts& counts, Turn turn) {
  const std::size_t lanes = options_.lanes.size();
  if (phase_ != Phase::catching_up || counts.published.size() != lanes) return;
  member->published.resize(lanes);
  take_greater(member->published, counts.published);
  end_catching_up_if_all_have(turn);
}

bool JobLeader::has_caught_up(const Member& member) const {
  const auto has_all_before = [&](const auto& failing) {
    const auto [lane, collective] = failing;
    const std::uint64_t published = lane < member.published.size() ? member.published[lane] : 0;
    return published + 1 >= first_undone({lane, collective});
  };
  return member.is_missed || submits_no_more(member.server) ||
         std::ranges::all_of(failing_, has_all_before);
}

void JobLeader::end_catching_up_if_all_have(Turn turn) {
  for (Member& member : members_) member.answered = has_caught_up(member);
  if (all_answered()) stop(first_, std::nullopt, turn);
}

void JobLeader::stop(const std::optional<Disagreement>& first,
                     const std::optional<Leave>& departure, Turn turn) {
  first_ = first;
  departure_ = departure;
  for (Member& member : members_) member.held.reset();
  enter(Phase::stopping, turn);
}

bool JobLeader::is_possible(const Disagreement& what) const {
  return what.lane < options_.lanes.size() && what.collective > 0;
}

void JobLeader::handle(Member* member, const JobMessage&, const Held& held, Turn turn) {
  const std::size_t lanes = options_.lanes.size();
  const bool fits = held.published.size() == lanes && held.completed.size() == lanes &&
                    held.reached.size() == lanes &&
                    std::ranges::all_of(held.disagreements, [this](const Disagreement& what) {
                      return is_possible(what);
                    });
  if (phase_ != Phase::stopping || held.epoch != epoch_ || !fits) return;
  bool has_advanced = false;
  if (!member->held.has_value()) {
    member->held = held;
  } else {
    take_greater(member->held->published, held.published);
    has_advanced = take_greater(member->held->completed, held.completed) ||
                   held.segments > member->held->segments;
    member->held->segments = std::max(member->held->segments, held.segments);
    take_greater(member->held->reached, held.reached);
    // What counts is what had been sent as a whole when the job was held; of that none comes more.
    member->held->unanswered = std::min(member->held->unanswered, held.unanswered);
    if (held.asked == asked()) {
      member->held->asked = held.asked;
      member->held->submitted = held.submitted;
    }
    auto& known = member->held->disagreements;
    known.insert(known.end(), held.disagreements.begin(), held.disagreements.end());
    std::ranges::sort(known, [](const Disagreement& a, const Disagreement& b) {
      return std::pair(a.lane, a.collective) < std::pair(b.lane, b.collective);
    });
    known.erase(std::unique(known.begin(), known.end()), known.end());
  }
  if (note_earlier(held.disagreements)) ask_all(turn.out);
  if (has_advanced && !departure_.has_value()) wait_on(turn);
  advance_stop(turn);
}

// As long as collectives complete or segments of them pass. Members that are done are asked, too:
// else they would give up.
void JobLeader::wait_on(Turn turn) {
  phase_deadline_ = turn.now + timing_.run_on;
  if (turn.now - asked_all_ < timing_.phase) return;
  asked_all_ = turn.now;
  ask_all(turn.out);
}

void JobLeader::ask_all(JobActions& out) {
  for (Member& member : members_) member.answered = false;
  ask(out);
}

// A failure that comes before the one that has caused the stop, in its lane: it becomes the cause.
bool JobLeader::note_earlier(const std::vector<Disagreement>& found) {
  if (!first_.has_value()) return false;
  bool is_earlier = false;
  for (const Disagreement& what : found) {
    if (what.lane != first_->lane || what.collective >= first_->collective) continue;
    first_ = what;
    is_earlier = true;
  }
  return is_earlier;
}

// What all members are to say what they have submitted as it.
std::optional<CollectiveName> JobLeader::asked() const {
  if (!first_.has_value()) return std::nullopt;
  return CollectiveName{first_->lane, first_->collective};
}

// How far it has come, and what was submitted as the cause of the stop.
bool JobLeader::has_told(const Member& member) const {
  return member.held.has_value() && member.held->asked == asked();
}

bool JobLeader::all_held() const {
  return std::ranges::all_of(members_, [this](const Member& member) { return has_told(member); });
}

// By lane: what all have submitted alike; and, if asked for, that comes before the first overflow.
LaneNumbers JobLeader::agreed(bool before_overflows) const {
  LaneNumbers agreed = members_.front().held->published;
  const auto limit = [&](const Disagreement& what) {
    if (what.cause == Disagreement::Cause::overflow && !before_overflows) return;
    agreed[what.lane] = std::min(agreed[what.lane], what.collective - 1);
  };
  for (const Member& member : members_) {
    for (std::size_t lane = 0; lane < agreed.size(); ++lane) {
      agreed[lane] = std::min(agreed[lane], member.held->published[lane]);
    }
  }
  if (first_.has_value()) limit(*first_);
  for (const Member& member : members_) {
    for (const Disagreement& what : member.held->disagreements) limit(what);
  }
  return agreed;
}

void JobLeader::advance_stop(Turn turn) {
  if (!all_held()) return;
  const LaneNumbers goal = agreed(true);
  const LaneNumbers possible = agreed(false);
  bool all = true;
  for (Member& member : members_) {
    // Whoever leaves may have received a message whose sender does not know it yet.
    bool done = !departure_.has_value() || member.held->unanswered == 0;
    for (std::size_t lane = 0; lane < goal.size(); ++lane) {
      const std::uint64_t completed = member.held->completed[lane];
      done = done && completed >= goal[lane];
      if (completed <= possible[lane]) continue;
      end(fmt::format(
              "server {} completed {} before all trainers agreed on it", space_.text(member.server),
              collective_text(name_, goal.size(), {static_cast<unsigned>(lane), completed})),
          {}, turn);
      return;
    }
    member.answered = done;
    all = all && done;
  }
  if (!all) return;
  if (note_overflow_before_departure()) {
    ask_all(turn.out);
  } else if (departure_.has_value()) {
    common_ = goal;
    end(departure_->how, {}, turn);
  } else {
    reset(goal, turn);
  }
}

// Then the stop has another cause, and the Leave comes again.
bool JobLeader::note_overflow_before_departure() {
  if (!departure_.has_value()) return false;
  for (const Member& member : members_) {
    for (const Disagreement& what : member.held->disagreements) {
      const bool overflowed = what.cause == Disagreement::Cause::overflow;
      if (overflowed && !first_.has_value()) first_ = what;
    }
  }
  if (!first_.has_value()) return false;
  for (const Member& member : members_) note_earlier(member.held->disagreements);
  departure_.reset();
  return true;
}

// The whole sentence about the cause of this stop.
std::string JobLeader::disagreement() const {
  if (first_->cause != Disagreement::Cause::signatures) return first_->text;
  std::vector<Submitted> submitted;
  for (const Member& member : members_) {
    submitted.push_back({member.server, member.held->submitted});
  }
  return disagreement_text(name_, options_.lanes.size(), *asked(), submitted, first_->text, space_);
}

// Why collectives before the cause fail too; empty if none does.
std::string JobLeader::late_text() const {
  std::vector<bcube::ServerId> late;
  for (const Member& member : members_) {
    const std::uint64_t published = member.held->published[first_->lane];
    if (published + 1 < first_->collective) late.push_back(member.server);
  }
  if (late.empty()) return "";
  return fmt::format("; what comes before it was not submitted in time on {}",
                     members_text(late, space_));
}

// For trainers that wait while the job stops.
std::string JobLeader::why_it_stops() const {
  if (departure_.has_value()) return departure_->how;
  if (first_->cause != Disagreement::Cause::signatures) return first_->text;
  return fmt::format(
      "the trainers disagree on {}",
      collective_text(name_, options_.lanes.size(), {first_->lane, first_->collective}));
}

// What all trainers have submitted and some servers do not complete: the first of the first lane.
std::string JobLeader::overdue_collective() const {
  const LaneNumbers goal = agreed(true);
  for (std::size_t lane = 0; lane < goal.size(); ++lane) {
    std::uint64_t least = goal[lane];
    for (const Member& member : members_) least = std::min(least, member.held->completed[lane]);
    if (least == goal[lane]) continue;
    std::vector<std::string> servers;
    for (const Member& member : members_) {
      if (member.held->completed[lane] == least) servers.push_back(space_.text(member.server));
    }
    const bool one = servers.size() == 1;
    return fmt::format(
        "server{} {} {} not complete {}, which all trainers have submitted", one ? "" : "s",
        fmt::join(servers, ", "), one ? "does" : "do",
        collective_text(name_, goal.size(), {static_cast<std::uint32_t>(lane), least + 1}));
  }
  if (departure_.has_value()) return departure_->how;
  return fmt::format("job \"{}\" could not be stopped in time", name_);
}

// For a sentence about what came of the stop; nothing if no disagreement has caused it.
std::string JobLeader::reason_of_stop() const {
  if (phase_ != Phase::stopping || !first_.has_value()) return "";
  return (all_held() ? disagreement() : why_it_stops()) +
         "; what all had submitted did not end in time: ";
}

void JobLeader::reset(const LaneNumbers& done, Turn turn) {
  cut_ = {done, done, first_->code, disagreement() + late_text()};
  for (const Member& member : members_) {
    take_greater(cut_.failed, member.held->published);
    take_greater(cut_.failed, member.held->reached);
  }
  // What an overflow has failed on one member may have ended well on another.
  if (first_->cause != Disagreement::Cause::overflow) cut_.text += failed_text(cut_);
  ++epoch_;
  enter(Phase::resetting, turn);
}

}  // namespace gradcube::control
