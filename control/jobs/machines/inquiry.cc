#include "control/jobs/machines/inquiry.h"

namespace gradcube::control {

void Inquiry::ask(const std::vector<JobMember>& members, std::size_t lanes) {
  const LaneNumbers none(lanes, 0);
  members_.clear();
  for (const JobMember& member : members) members_.push_back({member.server, 0, false, none, none});
}

void Inquiry::on_counts(bcube::ServerId server, const Counts& counts) {
  if (counts.inquiry != number()) return;
  for (MemberStanding& member : members_) {
    if (member.server != server) continue;
    const std::size_t lanes = member.published.size();
    member = {server, counts.pid, true, counts.published, counts.completed};
    member.published.resize(lanes);
    member.completed.resize(lanes);
  }
}

bool Inquiry::complete() const { return knows_members() && unanswered().empty(); }

std::vector<bcube::ServerId> Inquiry::unanswered() const {
  std::vector<bcube::ServerId> unanswered;
  for (const MemberStanding& member : members_) {
    if (!member.answered) unanswered.push_back(member.server);
  }
  return unanswered;
}

notice::Report Inquiry::report(const std::string& missing) const {
  return {number(), asked_.collective, missing, missing.empty() ? members_ : decltype(members_){}};
}

}  // namespace gradcube::control
