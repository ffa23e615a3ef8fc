#include "control/jobs/job_table.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "trainer/shared_layout.h"

namespace gradcube::control {
namespace {

constexpr std::size_t kMaxNamedMissing = 8;
// The steps between job ids: odd, so that all 2^32 come before one comes again, and large, so that
// the ids of two daemons that began with near seeds do not meet.
constexpr std::uint32_t kIdStep = 0x9e3779b9;

}  // namespace

std::string_view state_name(JobState state) {
  switch (state) {
    case JobState::gathering:
      return "gathering";
    case JobState::running:
      return "running";
    case JobState::aborted:
      break;
  }
  return "aborted";
}

const Job::Member* Job::member(bcube::ServerId server) const {
  const auto found = std::lower_bound(
      members.begin(), members.end(), server,
      [](const Member& member, bcube::ServerId wanted) { return member.server < wanted; });
  return found == members.end() || found->server != server ? nullptr : &*found;
}

std::uint32_t Job::joined() const {
  return static_cast<std::uint32_t>(
      std::count_if(members.begin(), members.end(),
                    [](const Member& member) { return member.trainer.has_value(); }));
}

JobTable::JobTable(const bcube::AddressSpace& space, std::uint32_t id_seed)
    : space_(space), next_id_(id_seed) {}

const Job* JobTable::find(JobId id) const {
  for (const Job& job : jobs_) {
    if (job.id == id) return &job;
  }
  const auto retired = retired_.find(id);
  return retired == retired_.end() ? nullptr : &retired->second;
}

Job* JobTable::find_mutable(JobId job) { return const_cast<Job*>(find(job)); }

std::vector<const Job*> JobTable::jobs() const {
  std::vector<const Job*> all;
  for (const Job& job : jobs_) all.push_back(&job);
  for (const auto& [id, job] : retired_) all.push_back(&job);
  return all;
}

Job* JobTable::open_job(std::string_view name) {
  for (Job& job : jobs_) {
    if (job.name == name && job.state != JobState::aborted) return &job;
  }
  return nullptr;
}

JobId JobTable::fresh_id() {
  do {
    next_id_ += kIdStep;
  } while (next_id_ == protocol::kNoJob || find(next_id_) != nullptr);
  return next_id_;
}

std::variant<Job*, Refusal> JobTable::begin(const JoinRequest& request) {
  if (jobs_.size() == kMaxJobs) {
    return Refusal{fmt::format(
        "job \"{}\" cannot start: this cluster already has {} jobs, which is the most it holds",
        request.name, kMaxJobs)};
  }
  Job job;
  job.id = fresh_id();
  job.name = request.name;
  job.options = request.options;
  job.ranks_are_wished = request.rank.has_value();
  for (const bcube::ServerId server : request.options.members) {
    job.members.push_back({server, static_cast<std::uint32_t>(job.members.size()), std::nullopt});
  }
  return &jobs_.emplace_back(std::move(job));
}

// Why a trainer may not become a member of the job; nothing if it may.
std::optional<Refusal> JobTable::objection(const Job& job, const JoinRequest& request) const {
  if (job.options != request.options) {
    return Refusal{fmt::format(
        "job \"{}\" has {}; this trainer asks for {}: expected the same of all its trainers",
        job.name, describe(job.options, space_), describe(request.options, space_))};
  }
  if (const Job::Member* member = job.member(request.server); member->trainer.has_value()) {
    return Refusal{fmt::format(
        "job \"{}\" already has a trainer on server {}: pid {}; a job has one trainer per server",
        job.name, space_.text(request.server), member->trainer->pid)};
  }
  if (job.ranks_are_wished != request.rank.has_value()) {
    return Refusal{
        fmt::format("job \"{}\": this trainer asks for {}, the first one asked for {}: expected a "
                    "rank from all "
                    "trainers of a job or from none",
                    job.name, request.rank.has_value() ? "a rank" : "no rank",
                    job.ranks_are_wished ? "one" : "none")};
  }
  for (const Job::Member& member : job.members) {
    if (!request.rank.has_value() || !member.trainer.has_value() || member.rank != *request.rank) {
      continue;
    }
    return Refusal{fmt::format("job \"{}\": rank {} belongs to the trainer on server {} (pid {})",
                               job.name, *request.rank, space_.text(member.server),
                               member.trainer->pid)};
  }
  return std::nullopt;
}

std::variant<JobPlace, Refusal> JobTable::join(const JoinRequest& request) {
  const std::vector<bcube::ServerId>& members = request.options.members;
  if (!shared::is_job_name(request.name)) {
    return Refusal{fmt::format("invalid job name: {}", shared::kJobNameRule)};
  }
  for (const bcube::ServerId server : members) {
    if (!space_.contains(server)) {
      return Refusal{fmt::format("job \"{}\": there is no server {}: expected 0 to {}",
                                 request.name, server, space_.servers() - 1)};
    }
  }
  if (!std::binary_search(members.begin(), members.end(), request.server)) {
    return Refusal{
        fmt::format("job \"{}\": this trainer's server {} is not among the members that "
                    "it asks for",
                    request.name, space_.text(request.server))};
  }
  if (request.rank.has_value() && *request.rank >= members.size()) {
    return Refusal{fmt::format("job \"{}\": rank {}: expected 0 to {}", request.name, *request.rank,
                               members.size() - 1)};
  }
  Job* job = open_job(request.name);
  if (job == nullptr) {
    auto begun = begin(request);
    if (auto* refusal = std::get_if<Refusal>(&begun)) return std::move(*refusal);
    job = std::get<Job*>(begun);
  }
  if (auto refusal = objection(*job, request)) return std::move(*refusal);
  auto& member = const_cast<Job::Member&>(*job->member(request.server));
  member.trainer = request.trainer;
  if (request.rank.has_value()) member.rank = *request.rank;
  if (job->joined() == job->size()) job->state = JobState::running;
  return JobPlace{job->id, member.rank, job->size(), job->epoch};
}

std::optional<Departed> JobTable::leave(JobId job, bcube::ServerId server) {
  return depart(job, server, "left");
}

std::optional<Departed> JobTable::died(JobId job, bcube::ServerId server) {
  return depart(job, server, "died");
}

std::optional<Departed> JobTable::evicted(JobId job, bcube::ServerId server, std::string_view why) {
  return depart(job, server, why);
}

std::optional<Departed> JobTable::depart(JobId id, bcube::ServerId server, std::string_view how) {
  Job* job = find_mutable(id);
  if (job == nullptr) return std::nullopt;
  auto* member = const_cast<Job::Member*>(job->member(server));
  if (member == nullptr || !member->trainer.has_value()) return std::nullopt;
  Departed departure;
  departure.message = fmt::format("the trainer of job \"{}\" on server {} (pid {}) {}", job->name,
                                  space_.text(server), member->trainer->pid, how);
  member->trainer.reset();
  ++job->epoch;
  if (job->joined() == 0) {
    departure.forgotten = true;
    forget(id);
    return departure;
  }
  job->state = JobState::aborted;
  return departure;
}

void JobTable::forget(JobId id) {
  if (retired_.erase(id) == 0) std::erase_if(jobs_, [id](const Job& job) { return job.id == id; });
}

void JobTable::retire(JobId id) {
  const auto found =
      std::find_if(jobs_.begin(), jobs_.end(), [id](const Job& job) { return job.id == id; });
  if (found == jobs_.end() || found->state != JobState::aborted) return;
  retired_.emplace(id, std::move(*found));
  jobs_.erase(found);
}

std::optional<std::uint16_t> JobTable::begin_reset(JobId id) {
  Job* job = find_mutable(id);
  if (job == nullptr) return std::nullopt;
  return ++job->epoch;
}

std::string JobTable::missing(JobId id) const {
  const Job* job = find(id);
  if (job == nullptr || job->state != JobState::gathering) return "";
  const std::uint32_t count = job->size() - job->joined();
  std::string names;
  std::size_t named = 0;
  for (const Job::Member& member : job->members) {
    if (member.trainer.has_value() || named == kMaxNamedMissing) continue;
    names += fmt::format("{}{}", named == 0 ? "" : ", ", space_.text(member.server));
    ++named;
  }
  if (count > named) names += fmt::format(" and {} more", count - named);
  return fmt::format("{} of {} trainers {} not joined job \"{}\": server{} {}", count, job->size(),
                     count == 1 ? "has" : "have", job->name, count == 1 ? "" : "s", names);
}

}  // namespace gradcube::control
