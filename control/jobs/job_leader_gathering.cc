// How a leader gathers the trainers of a job and what it makes of them.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "control/jobs/job_leader.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kMostNamed = 8;

}  // namespace

void JobLeader::handle(Member* member, const JobMessage& message, const Join& join, Instant now,
                       JobActions& out) {
  if (member != nullptr && member->agent == message.from) {
    if (phase_ == Phase::gathering || phase_ == Phase::ending) send(message.from, request(), out);
    return;
  }
  if (const auto reason = objection(member, message, join); reason.has_value()) {
    send(message.from, Refused{*reason}, out);
    return;
  }
  if (member->agent.has_value()) {
    const auto order = [](const JobEnd& end) { return std::pair(end.incarnation, end.attempt); };
    if (order(message.from) < order(*member->agent)) return;
    if (phase_ != Phase::gathering) {
      // A server has one trainer of a job: the one that was here has gone.
      if (phase_ != Phase::ending) {
        end(fmt::format("the trainer on server {} joins job \"{}\" anew",
                        space_.text(message.from.server), name_),
            {message.from.server}, now, out);
      }
      return;
    }
  }
  if (phase_ != Phase::gathering) return;
  member->agent = message.from;
  member->join = join;
  ranks_are_wished_ = join.rank.has_value();
  if (join.rank.has_value()) member->rank = *join.rank;
  if (missing().empty()) {
    enter(Phase::preparing, now, out);
  } else {
    send(message.from, request(), out);
  }
}

// Why a trainer may not become a member; nothing if it may.
std::optional<std::string> JobLeader::objection(const Member* member, const JobMessage& message,
                                                const Join& join) const {
  if (join.options != options_ || member == nullptr) {
    return fmt::format(
        "job \"{}\" has {}; this trainer asks for {}: expected the same of all its trainers", name_,
        describe(options_, space_), describe(join.options, space_));
  }
  for (const Member& other : members_) {
    if (other.server == message.from.server || !other.join.has_value()) continue;
    if (ranks_are_wished_ != join.rank.has_value()) {
      return fmt::format(
          "job \"{}\": this trainer asks for {}, the first one asked for {}: expected a rank from "
          "all trainers of a job or from none",
          name_, join.rank.has_value() ? "a rank" : "no rank", ranks_are_wished_ ? "one" : "none");
    }
    if (join.rank.has_value() && other.rank == *join.rank) {
      return fmt::format("job \"{}\": rank {} belongs to the trainer on server {} (pid {})", name_,
                         *join.rank, space_.text(other.server), other.join->trainer.pid);
    }
  }
  return std::nullopt;
}

std::string JobLeader::missing() const {
  std::string names;
  std::size_t count = 0;
  for (const Member& member : members_) {
    if (member.agent.has_value()) continue;
    if (count < kMostNamed) {
      names += fmt::format("{}{}", count == 0 ? "" : ", ", space_.text(member.server));
    }
    ++count;
  }
  if (count == 0) return "";
  if (count > kMostNamed) names += fmt::format(" and {} more", count - kMostNamed);
  return fmt::format("{} of {} trainers {} not joined job \"{}\": server{} {}", count,
                     members_.size(), count == 1 ? "has" : "have", name_, count == 1 ? "" : "s",
                     names);
}

JobDescriptor JobLeader::descriptor() const {
  JobDescriptor job;
  job.id = id_;
  job.name = name_;
  job.options = options_;
  job.ranks_are_wished = ranks_are_wished_;
  job.transport = members_.front().join->transport;
  for (const Member& member : members_) {
    job.members.push_back(
        {member.server, member.rank, member.agent->incarnation, member.agent->attempt});
    const TransportFacts& own = member.join->transport;
    job.transport.segment_bytes = std::min(job.transport.segment_bytes, own.segment_bytes);
    job.transport.window = std::min(job.transport.window, own.window);
    job.transport.checksums = job.transport.checksums || own.checksums;
  }
  job.epoch = epoch_;
  return job;
}

}  // namespace gradcube::control
