#include "control/jobs/machines/job_node.h"

#include <algorithm>
#include <cstddef>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "bcube_forwarding/neighbours.h"
#include "control/jobs/wait_cause.h"
#include "trainer/shared_layout.h"

namespace gradcube::control {
namespace {

// Odd, so that all 2^32 ids come before one comes again, and large, so that the ids
// of two daemons with near seeds do not meet.
constexpr std::uint32_t kIdStep = 0x9e3779b9;

// Longer than a message is under way.
constexpr Instant kRemembered = std::chrono::seconds(5);

JobActions::iterator place_in(JobActions& actions, std::size_t number) {
  return actions.begin() + static_cast<std::ptrdiff_t>(number);
}

}  // namespace

JobNode::JobNode(bcube::ServerId server, Incarnation incarnation, const bcube::AddressSpace& space,
                 const JobTiming& timing, std::uint32_t id_seed)
    : server_(server),
      incarnation_(incarnation),
      space_(space),
      timing_(timing),
      next_id_(id_seed) {}

std::optional<std::string> JobNode::objection(const JoinRequest& request) const {
  const auto& members = request.options.members;
  if (!shared::is_job_name(request.name)) {
    return fmt::format("invalid job name: {}", shared::kJobNameRule);
  }
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] >= space_.addresses()) {
      return fmt::format("job \"{}\": there is no server {}: expected 0 to {}", request.name,
                         members[i], space_.addresses() - 1);
    }
    if (space_.is_absent(members[i])) {
      return fmt::format(
          "job \"{}\": server {}, number {}, is absent: the cluster has none at this address",
          request.name, space_.text(members[i]), members[i]);
    }
    if (i > 0 && members[i] <= members[i - 1]) {
      return fmt::format("job \"{}\": expected ascending members, each once", request.name);
    }
  }
  if (!std::ranges::binary_search(members, server_)) {
    return fmt::format(
        "job \"{}\": this trainer's server {} is not among the members that it asks for",
        request.name, space_.text(server_));
  }
  if (request.rank.has_value() && *request.rank >= members.size()) {
    return fmt::format("job \"{}\": rank {}: expected 0 to {}", request.name, *request.rank,
                       members.size() - 1);
  }
  unsigned jobs = 0;
  unsigned of_user = 0;
  for (const auto& [attempt, agent] : agents_) {
    if (agent.is_ending()) continue;
    ++jobs;
    if (agent.trainer().uid == request.trainer.uid) ++of_user;
    if (agent.name() != request.name || agent.owner() != request.owner || agent.trainer_gone()) {
      continue;
    }
    return fmt::format(
        "job \"{}\" already has a trainer on server {}: pid {}; two programs that run at the same "
        "time need jobs of two names, and where each server is to have several trainers, all say "
        "how many, trainers_per_server, and which of them they are, local",
        request.name, space_.text(server_), agent.trainer().pid);
  }
  return too_many(request, jobs, of_user);
}

// Where there are so many jobs, of which the user has some.
std::optional<std::string> JobNode::too_many(const JoinRequest& request, unsigned jobs,
                                             unsigned of_user) const {
  if (jobs >= kMaxJobs) {
    return fmt::format(
        "job \"{}\" cannot start: server {} already has {} jobs, which is the most it holds",
        request.name, space_.text(server_), kMaxJobs);
  }
  if (!share_.allows(kMaxJobs, jobs, of_user)) {
    return fmt::format(
        "job \"{}\" cannot start: user {} has {} jobs on server {}, and {} of {} are free; a user "
        "may have no more than are left for others: end some",
        request.name, request.trainer.uid, of_user, space_.text(server_), kMaxJobs - jobs,
        kMaxJobs);
  }
  if (of_user >= jobs_per_user_) {
    return fmt::format(
        "job \"{}\" cannot start: user {} has {} jobs on server {} and may have {}: end some, or "
        "start the cluster with a larger --user-jobs",
        request.name, request.trainer.uid, of_user, space_.text(server_), jobs_per_user_);
  }
  return std::nullopt;
}

void JobNode::set_key(KeyId key) {
  for (auto& [attempt, agent] : agents_) agent.set_key(key);
  for (auto& [id, leader] : leaders_) leader.set_key(key);
}

std::variant<Attempt, Refused> JobNode::join(const JoinRequest& request, TransportFacts transport,
                                             Instant now, JobActions& out) {
  if (const auto reason = objection(request); reason.has_value()) return Refused{*reason};
  const Attempt attempt = ++last_attempt_;
  JobAgent agent({server_, incarnation_, attempt}, request, transport, space_, timing_, now);
  const auto placed = agents_.emplace(attempt, std::move(agent)).first;
  try {
    placed->second.on_time({now, out});
    settle(now, out);
  } catch (...) {
    agents_.erase(attempt);  // its caller knows of none
    throw;
  }
  return attempt;
}

void JobNode::on_message(const JobMessage& message, Instant now, JobActions& out) {
  if (message.to.server != server_) return;
  on_heard(message.from.server, message.from.incarnation, now, out);
  dispatch(message, now, out);
  settle(now, out);
}

void JobNode::on_heard(bcube::ServerId server, Incarnation incarnation, Instant now,
                       JobActions& out) {
  if (server == server_) return;
  const Incarnation before = std::exchange(incarnations_[server], incarnation);
  if (before == incarnation || before == 0) return;
  // What has begun since concerns the new incarnation alone.
  const std::string why = fmt::format("the daemon on server {} was restarted", space_.text(server));
  for (auto& [id, leader] : leaders_) {
    if (leader.counts_on_another(server, incarnation))
      leader.on_server_gone(server, why, {now, out});
  }
  for (auto& [attempt, agent] : agents_) {
    if (agent.counts_on_another(server, incarnation)) agent.on_server_gone(server, why, {now, out});
  }
  settle(now, out);
}

void JobNode::dispatch(const JobMessage& message, Instant now, JobActions& out) {
  if (message.to.incarnation != 0 && message.to.incarnation != incarnation_) return;
  if (message.to.attempt == 0) {
    dispatch_to_leader(message, now, out);
    return;
  }
  const auto agent = agents_.find(message.to.attempt);
  if (agent == agents_.end()) {
    unknown(message, out);
  } else {
    agent->second.on_message(message, {now, out});
  }
}

void JobNode::dispatch_to_leader(const JobMessage& message, Instant now, JobActions& out) {
  if (std::holds_alternative<Seek>(message.body)) return answer_seek(message, out);
  const auto* join = std::get_if<Join>(&message.body);
  if (join != nullptr && answer_late_join(message, out)) return;
  if (JobLeader* known = leader_for(message); known != nullptr) {
    known->on_message(message, {now, out});
    return;
  }
  if (join == nullptr) {
    unknown(message, out);
    return;
  }
  const auto& members = join->options.members;
  if (members.empty() || members.front() != server_) return;
  begin_job(message, *join, now, out);
}

void JobNode::begin_job(const JobMessage& message, const Join& join, Instant now, JobActions& out) {
  if (const std::string reason = too_many_for(message, join); !reason.empty()) {
    const std::string why = fmt::format("job \"{}\" cannot start: {}", message.name, reason);
    return answer(message, Refused{why}, out);
  }
  do {
    next_id_ += kIdStep;
  } while (next_id_ == protocol::kNoJob || leaders_.contains(next_id_));
  JobLeader leader({server_, incarnation_, 0}, next_id_, message.name, join.options, space_,
                   timing_, message.owner);
  leaders_.emplace(next_id_, std::move(leader)).first->second.on_message(message, {now, out});
}

// Why no job begins with this trainer; empty if one may.
std::string JobNode::too_many_for(const JobMessage& message, const Join& join) const {
  const bcube::ServerId server = message.from.server;
  if (server == server_) return "";  // join() counts these
  unsigned all = 0;
  unsigned with_it = 0;
  unsigned of_tenant = 0;
  unsigned of_tenant_with_it = 0;
  for (const auto& [id, leader] : leaders_) {
    if (leader.phase() != JobLeader::Phase::gathering || leader.gathers_with(server_)) continue;
    ++all;
    const bool is_with_it = leader.gathers_with(server);
    if (is_with_it) ++with_it;
    if (leader.owner() == kOwnUser || !leader.has_user(join.trainer.uid)) continue;
    ++of_tenant;
    if (is_with_it) ++of_tenant_with_it;
  }
  if (with_it >= kMostGatheredForOne) {
    return fmt::format(
        "{} jobs with trainers of server {} wait for one on server {}, which is the most that it "
        "keeps for a server: let some begin or end first",
        with_it, space_.text(server), space_.text(server_));
  }
  if (all >= kMostGathered) {
    return fmt::format(
        "{} jobs wait for a trainer on server {}, which is the most that it keeps: let some begin "
        "or end first",
        all, space_.text(server_));
  }
  // Whoever has a job's secret is no owner.
  const FairShare share{message.owner != kOwnUser};
  if (!share.allows(kMostGathered, all, of_tenant) ||
      !share.allows(kMostGatheredForOne, with_it, of_tenant_with_it)) {
    return fmt::format(
        "{} jobs of user {} wait for a trainer on server {}, which leaves no more for others: let "
        "some begin or end first",
        of_tenant, join.trainer.uid, space_.text(server_));
  }
  return "";
}

void JobNode::answer_seek(const JobMessage& message, JobActions& out) const {
  for (const auto& [attempt, agent] : agents_) {
    const bool lives = !agent.is_ending() && !agent.trainer_gone();
    if (agent.name() != message.name || agent.owner() != message.owner || !lives) continue;
    if (agent.leader_server() == message.from.server) continue;
    answer(message, Elsewhere{agent.trainer(), agent.options()}, out);
  }
}

// Of a trainer whose job has ended: it is told so, if it does not know. Whether it was one.
bool JobNode::answer_late_join(const JobMessage& message, JobActions& out) const {
  const auto past =
      std::ranges::find_if(past_, [&](const Past& each) { return each.agent == message.from; });
  if (past == past_.end()) return false;
  answer(message, Abort{past->why, {}, std::nullopt, std::nullopt, false}, out);
  return true;
}

// The leader of the message's job; for one without an id, that of this very trainer, or the one
// that trainers can still join or are refused by.
JobLeader* JobNode::leader_for(const JobMessage& message) {
  if (message.job != protocol::kNoJob) {
    const auto found = leaders_.find(message.job);
    return found == leaders_.end() ? nullptr : &found->second;
  }
  JobLeader* open = nullptr;
  for (auto& [id, leader] : leaders_) {
    if (leader.name() != message.name || leader.owner() != message.owner || leader.over()) continue;
    if (leader.has(message.from)) return &leader;
    if (leader.phase() != JobLeader::Phase::ending) open = &leader;
  }
  return open;
}

void JobNode::unknown(const JobMessage& message, JobActions& out) const {
  if (!std::holds_alternative<Unknown>(message.body)) answer(message, Unknown{}, out);
}

// As whom it was sent to.
void JobNode::answer(const JobMessage& message, JobBody body, JobActions& out) const {
  const JobEnd self{server_, incarnation_, message.to.attempt};
  out.emplace_back(
      JobMessage{self, message.from, message.job, message.name, std::move(body), message.owner});
}

void JobNode::on_event(Attempt attempt, const JobEvent& event, Instant now, JobActions& out) {
  const auto agent = agents_.find(attempt);
  if (agent == agents_.end()) {
    const auto* asked = std::get_if<event::Asked>(&event);
    if (asked == nullptr) return;
    const notice::Report report{asked->inquiry, asked->collective, "the job has ended", {}};
    out.emplace_back(ToTrainer{attempt, report});
    return;
  }
  agent->second.on_event(event, {now, out});
  settle(now, out);
}

void JobNode::on_server_silent(bcube::ServerId server, bool no_way, Instant now, JobActions& out) {
  if (server == server_) return;
  server_gone(server, silent_daemon(server, "", no_way, space_), now, out);
  settle(now, out);
}

void JobNode::server_gone(bcube::ServerId server, const std::string& why, Instant now,
                          JobActions& out) {
  for (auto& [id, leader] : leaders_) leader.on_server_gone(server, why, {now, out});
  for (auto& [attempt, agent] : agents_) agent.on_server_gone(server, why, {now, out});
}

// Delivers what goes to this very server, and forgets what is over. In place: where one of these
// messages finds no memory, it is lost, as it might be on a link, and all else is still there.
void JobNode::settle(Instant now, JobActions& out) {
  std::size_t kept = 0;
  for (std::size_t at = 0; at < out.size(); ++at) {
    auto* const message = std::get_if<JobMessage>(&out[at]);
    if (message == nullptr || message->to.server != server_) {
      if (kept != at) out[kept] = std::move(out[at]);
      ++kept;
      continue;
    }
    const JobMessage own = std::move(*message);  // what it leads to moves the others
    try {
      dispatch(own, now, out);
    } catch (...) {
      out.erase(place_in(out, kept), place_in(out, at + 1));
      throw;
    }
  }
  out.erase(place_in(out, kept), out.end());
  forget_what_is_over(now);
}

void JobNode::forget_what_is_over(Instant now) {
  std::erase_if(agents_, [](const auto& entry) { return entry.second.over(); });
  for (const auto& [id, leader] : leaders_) {
    if (!leader.over()) continue;
    for (const JobEnd& agent : leader.agents()) {
      past_.push_back({agent, leader.why(), now + kRemembered});
    }
  }
  std::erase_if(leaders_, [](const auto& entry) { return entry.second.over(); });
  while (!past_.empty() && past_.front().until <= now) past_.pop_front();
}

namespace {

using Servers = std::set<bcube::ServerId>;

void add(Servers& servers, const std::vector<bcube::ServerId>& more) {
  servers.insert(more.begin(), more.end());
}

std::vector<bcube::ServerId> ascending(const Servers& servers) {
  return {servers.begin(), servers.end()};
}

}  // namespace

std::vector<bcube::ServerId> JobNode::greeted() const {
  Servers servers;
  for (const auto& [attempt, agent] : agents_) {
    add(servers, bcube::next_to(space_, server_, agent.servers()));
  }
  return ascending(servers);
}

std::vector<bcube::ServerId> JobNode::watched() const {
  Servers servers;
  for (const auto& [attempt, agent] : agents_) {
    const bool is_set_up =
        agent.phase() >= JobAgent::Phase::preparing && agent.phase() <= JobAgent::Phase::aborting;
    if (is_set_up) add(servers, bcube::next_to(space_, server_, agent.servers()));
  }
  return ascending(servers);
}

void JobNode::on_time(Instant now, JobActions& out) {
  for (auto& [id, leader] : leaders_) leader.on_time({now, out});
  for (auto& [attempt, agent] : agents_) agent.on_time({now, out});
  settle(now, out);
}

std::optional<Instant> JobNode::deadline() const {
  std::optional<Instant> first;
  for (const auto& [id, leader] : leaders_) first = earlier(first, leader.deadline());
  for (const auto& [attempt, agent] : agents_) first = earlier(first, agent.deadline());
  return first;
}

const JobAgent* JobNode::agent(Attempt attempt) const {
  const auto found = agents_.find(attempt);
  return found == agents_.end() ? nullptr : &found->second;
}

}  // namespace gradcube::control
