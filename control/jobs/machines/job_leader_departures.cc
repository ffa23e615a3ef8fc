// How a leader goes on without trainers that have left, and how all members learn of it.
#include <algorithm>

#include "control/jobs/departures.h"
#include "control/jobs/machines/job_leader.h"

namespace gradcube::control {

bool JobLeader::has_left(bcube::ServerId server, std::uint32_t local) const {
  return std::ranges::any_of(departures_, [&](const Departure& each) {
    return each.server == server && each.local == local;
  });
}

// Not without the last one.
bool JobLeader::goes_on_without(bcube::ServerId server, const Leave& leave) const {
  const bool fits = !leave.died && leave.local < options_.trainers && leave.submitted.has_value() &&
                    leave.submitted->size() == options_.lanes.size();
  return fits &&
         (has_left(server, leave.local) || departures_.size() + 1 < options_.all_trainers());
}

// All of its trainers have left.
bool JobLeader::submits_no_more(bcube::ServerId server) const {
  const auto left = std::ranges::count_if(
      departures_, [server](const Departure& each) { return each.server == server; });
  return left == options_.trainers;
}

// Of its lane: this one, or an earlier one that a trainer which has left has not submitted.
std::uint64_t JobLeader::first_undone(const CollectiveName& failing) const {
  std::uint64_t first = failing.number;
  for (const Departure& each : departures_) {
    first = std::min(first, each.submitted[failing.lane] + 1);
  }
  return first;
}

// All are told in a moment: most trainers leave together.
void JobLeader::note(bcube::ServerId server, const Leave& leave, Instant now) {
  if (has_left(server, leave.local)) return;
  if (!any_lacks_departures()) next_ask_ = now + timing_.repeat;
  departures_.push_back({server, leave.local, leave.how, *leave.submitted});
}

bool JobLeader::any_lacks_departures() const {
  return std::ranges::any_of(members_,
                             [this](const Member& member) { return lacks_departures(member); });
}

void JobLeader::tell_departures(const Member& member, JobActions& out) const {
  if (!lacks_departures(member) || !member.agent.has_value()) return;
  const auto begin = departures_.begin() + member.noted;
  const auto count = std::min<std::ptrdiff_t>(departures_.end() - begin, kMostDeparturesTold);
  send(*member.agent, Left{member.noted, {begin, begin + count}}, out);
}

void JobLeader::handle(Member* member, const JobMessage&, const Noted& noted, Turn turn) {
  const auto known = std::min<std::size_t>(noted.departures, departures_.size());
  if (known <= member->noted) return;
  member->noted = static_cast<std::uint32_t>(known);
  if (phase_ == Phase::running) tell_departures(*member, turn.out);
}

}  // namespace gradcube::control
