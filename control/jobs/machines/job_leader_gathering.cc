// How a leader gathers the trainers of a job and what it makes of them.
#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "control/jobs/machines/job_leader.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kMostMissingNamed = 8;

}  // namespace

void JobLeader::handle(Member* member, const JobMessage& message, const Join& join, Turn turn) {
  if (member != nullptr && member->agent == message.from) {
    if (phase_ == Phase::gathering) {
      member->join->trainers = std::max(member->join->trainers, join.trainers);
      member->join->transport.key = join.transport.key;
      if (missing().empty()) return enter(Phase::preparing, turn);
    }
    if (phase_ == Phase::gathering || phase_ == Phase::ending)
      send(message.from, request(), turn.out);
    return;
  }
  const bool has_predecessor = member != nullptr && member->agent.has_value();
  if (has_predecessor) {
    const JobEnd& known = *member->agent;
    if (message.from.incarnation == known.incarnation && message.from.attempt < known.attempt) {
      return;
    }
  }
  if (const std::string ends = old_job_ends(member); !ends.empty()) {
    JobMessage answer{self_, message.from, protocol::kNoJob, name_, Pending{ends}, owner_};
    turn.out.emplace_back(std::move(answer));
    // It tells again how its trainer left, or its daemon does not know it any more.
    if (has_predecessor && phase_ == Phase::gathering) send(*member->agent, request(), turn.out);
    return;
  }
  if (const auto reason = objection(member, message, join); reason.has_value()) {
    if (member != nullptr) {
      member->absence = fmt::format("the trainer on server {} (pid {}) was refused: {}",
                                    space_.text(member->server), join.trainer.pid, *reason);
      member->elsewhere.reset();
    }
    send(message.from, Refused{*reason}, turn.out);
    end_if_deserted();
    return;
  }
  if (phase_ != Phase::gathering) return;
  Join kept = join;  // where there is no memory for it, the agent has not joined
  member->join = std::move(kept);
  member->agent = message.from;
  member->absence.clear();
  member->elsewhere.reset();
  member->heard = turn.now;
  ranks_are_wished_ = join.rank.has_value();
  if (join.rank.has_value()) member->rank = *join.rank;
  if (missing().empty()) {
    enter(Phase::preparing, turn);
  } else {
    send(message.from, request(), turn.out);
  }
}

void JobLeader::set_key(KeyId key) {
  if (members_.front().join.has_value()) members_.front().join->transport.key = key;
}

void JobLeader::seek_missing(Turn turn) {
  for (Member& member : members_) {
    if (member.agent.has_value()) continue;
    if (member.elsewhere.has_value() && !is_fresh(*member.elsewhere, turn.now)) {
      member.elsewhere.reset();
      member.absence.clear();
    }
    send({member.server, 0, 0}, Seek{}, turn.out);
  }
}

// It is told again with each ping, unless that is lost.
bool JobLeader::is_fresh(const Sighting& sighting, Instant now) const {
  return now - sighting.heard <= 3 * timing_.ping;
}

// It may be about to leave an older job. If it stays, this job cannot begin.
void JobLeader::handle(Member* member, const JobMessage&, const Elsewhere& elsewhere, Turn turn) {
  if (phase_ != Phase::gathering || member == nullptr || member->agent.has_value()) return;
  std::optional<Sighting>& sighting = member->elsewhere;
  const std::int32_t pid = elsewhere.trainer.pid;
  if (!sighting.has_value() || sighting->pid != pid || !is_fresh(*sighting, turn.now)) {
    sighting = Sighting{pid, turn.now, turn.now};
  }
  sighting->heard = turn.now;
  member->absence = fmt::format(
      "the trainer on server {} (pid {}) asks by the same job name for other members: {}",
      space_.text(member->server), pid, members_text(elsewhere.options.members, space_));
  if (turn.now - sighting->since < timing_.elsewhere) return;
  end(fmt::format("job \"{}\" is for {}; {}", name_, members_text(options_.members, space_),
                  member->absence),
      {}, turn);
}

bool JobLeader::gathers_with(bcube::ServerId server) const {
  return phase_ == Phase::gathering &&
         std::ranges::any_of(members_, [server](const Member& member) {
           return member.server == server && member.agent.has_value();
         });
}

bool JobLeader::has_user(std::uint32_t uid) const {
  return std::ranges::any_of(members_, [uid](const Member& member) {
    return member.join.has_value() && member.join->trainer.uid == uid;
  });
}

void JobLeader::leave_out(Member& member) {
  member.agent.reset();
  member.join.reset();
  end_if_deserted();
}

// Nobody has joined, or all have gone again.
void JobLeader::end_if_deserted() {
  const bool deserted =
      std::ranges::none_of(members_, [](const Member& each) { return each.agent.has_value(); });
  if (deserted) phase_ = Phase::over;
}

// An agent repeats its Join until the job is complete. One that does not hear the leader's answers
// has given up by then.
void JobLeader::leave_out_silent(Instant now) {
  for (Member& member : members_) {
    if (member.agent.has_value() && now - member.heard > 2 * timing_.phase) leave_out(member);
  }
  end_if_deserted();  // also where there was no memory for the first one
}

// A server has one agent of a job: where another joins, a trainer that was there has gone, and this
// job is about to hear of it. Empty if the job is not ending.
std::string JobLeader::old_job_ends(const Member* member) const {
  std::string cause;
  if (member != nullptr && member->agent.has_value()) {
    cause = fmt::format("its trainer on server {} has gone", space_.text(member->server));
  } else if (phase_ == Phase::ending) {
    cause = why_;
  } else if (departure_.has_value()) {
    cause = departure_->how;
  }
  if (cause.empty()) return "";
  if (phase_ == Phase::running && !departures_.empty()) {
    return fmt::format("the old job \"{}\" goes on until its other trainers have left, too: {}",
                       name_, cause);
  }
  return fmt::format("the old job \"{}\" is ending: {}", name_, cause);
}

// Why a trainer may not become a member; nothing if it may.
std::optional<std::string> JobLeader::objection(const Member* member, const JobMessage& message,
                                                const Join& join) const {
  if (join.options != options_ || member == nullptr) {
    return fmt::format(
        "job \"{}\" has {}; this trainer asks for {}: expected the same of all its trainers", name_,
        describe(options_, space_), describe(join.options, space_));
  }
  if (join.rank.has_value() && *join.rank >= members_.size()) {
    return fmt::format("job \"{}\": rank {}: expected 0 to {}", name_, *join.rank,
                       members_.size() - 1);
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

std::uint32_t JobLeader::missing_of(const Member& member) const {
  if (!member.agent.has_value()) return options_.trainers;
  return options_.trainers - std::min(options_.trainers, member.join->trainers);
}

std::string JobLeader::missing() const {
  std::string names;
  std::size_t servers = 0;
  std::size_t count = 0;
  for (const Member& member : members_) {
    const std::uint32_t here = missing_of(member);
    if (here == 0) continue;
    if (servers < kMostMissingNamed) {
      names += fmt::format("{}{}", servers == 0 ? "" : ", ", space_.text(member.server));
      if (options_.trainers > 1) names += fmt::format(" ({} of {})", here, options_.trainers);
    }
    ++servers;
    count += here;
  }
  if (count == 0) return "";
  if (servers > kMostMissingNamed)
    names += fmt::format(" and {} more", servers - kMostMissingNamed);
  std::string text = fmt::format("{} of {} trainers {} not joined job \"{}\": server{} {}", count,
                                 options_.all_trainers(), count == 1 ? "has" : "have", name_,
                                 servers == 1 ? "" : "s", names);
  // A trainer that asks for other members, by the same name, waits in a job of its own.
  if (members_.size() < space_.servers()) {
    text += fmt::format("; the job is for {}", members_text(options_.members, space_));
  }
  const auto explained = std::ranges::find_if(members_, [](const Member& member) {
    return !member.agent.has_value() && !member.absence.empty();
  });
  if (explained != members_.end()) text += "; " + explained->absence;
  return text;
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
