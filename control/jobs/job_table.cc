#include "control/jobs/job_table.h"

#include <fmt/format.h>
#include <utility>

#include "trainer/shared_layout.h"

namespace gradcube::control {
namespace {

constexpr std::uint32_t kNonceMask = 0xffffff;
constexpr std::size_t kMaxNamedMissing = 8;

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

JobTable::JobTable(const bcube::AddressSpace& space, std::uint32_t nonce_seed)
    : space_(space), next_nonce_(nonce_seed & kNonceMask) {}

const Job* JobTable::find(JobId job) const {
  const unsigned index = job_index(job);
  if (index < kMaxJobs && jobs_[index] && jobs_[index]->id == job) return &*jobs_[index];
  const auto retired = retired_.find(job);
  return retired == retired_.end() ? nullptr : &retired->second;
}

Job* JobTable::find_mutable(JobId job) { return const_cast<Job*>(find(job)); }

std::vector<const Job*> JobTable::jobs() const {
  std::vector<const Job*> all;
  for (const auto& index : jobs_) {
    if (index) all.push_back(&*index);
  }
  for (const auto& [id, job] : retired_) all.push_back(&job);
  return all;
}

Job* JobTable::open_job(std::string_view name) {
  for (auto& index : jobs_) {
    if (index && index->name == name && index->state != JobState::aborted) return &*index;
  }
  return nullptr;
}

Job* JobTable::create(std::string_view name) {
  for (unsigned index = 0; index < kMaxJobs; ++index) {
    if (jobs_[index]) continue;
    if (next_nonce_ == 0) next_nonce_ = 1;  // so that no job's id is 0
    Job& job = jobs_[index].emplace();
    job.id = protocol::make_job_id(index, next_nonce_);
    next_nonce_ = (next_nonce_ + 1) & kNonceMask;
    job.name = name;
    job.members.resize(space_.servers());
    return &job;
  }
  return nullptr;
}

std::variant<JobPlace, Refusal> JobTable::join(std::string_view name, bcube::ServerId server,
                                               TrainerInfo trainer) {
  if (!shared::is_job_name(name)) {
    return Refusal{fmt::format("invalid job name: {}", shared::kJobNameRule)};
  }
  if (!space_.contains(server)) {
    return Refusal{fmt::format("there is no server {} among {}", server, space_.servers())};
  }
  Job* job = open_job(name);
  if (job != nullptr && job->members[server]) {
    return Refusal{fmt::format(
        "job \"{}\" already has a trainer on server {}: pid {}; a job has one trainer per server",
        name, space_.text(server), job->members[server]->pid)};
  }
  if (job == nullptr) job = create(name);
  if (job == nullptr) {
    return Refusal{fmt::format(
        "job \"{}\" cannot start: this cluster already has {} jobs, which is the most it holds",
        name, kMaxJobs)};
  }
  job->members[server] = trainer;
  ++job->joined;
  if (job->joined == space_.servers()) job->state = JobState::running;
  return JobPlace{job->id, server, space_.servers(), job->epoch};
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
  if (job == nullptr || !space_.contains(server) || !job->members[server]) return std::nullopt;
  Departed departure;
  departure.message = fmt::format("the trainer of job \"{}\" on server {} (pid {}) {}", job->name,
                                  space_.text(server), job->members[server]->pid, how);
  job->members[server].reset();
  --job->joined;
  ++job->epoch;
  if (job->joined == 0) {
    departure.forgotten = true;
    forget(id);
    return departure;
  }
  job->state = JobState::aborted;
  return departure;
}

void JobTable::forget(JobId id) {
  if (retired_.erase(id) == 0) jobs_[job_index(id)].reset();
}

void JobTable::retire(JobId id) {
  if (job_index(id) >= kMaxJobs) return;
  std::optional<Job>& job = jobs_[job_index(id)];
  if (!job || job->id != id || job->state != JobState::aborted) return;
  retired_.emplace(id, std::move(*job));
  job.reset();
}

std::optional<std::uint16_t> JobTable::begin_reset(JobId id) {
  Job* job = find_mutable(id);
  if (job == nullptr) return std::nullopt;
  return ++job->epoch;
}

std::string JobTable::missing(JobId id) const {
  const Job* job = find(id);
  if (job == nullptr || job->state != JobState::gathering) return "";
  const std::uint32_t count = space_.servers() - job->joined;
  std::string names;
  std::size_t named = 0;
  for (bcube::ServerId server = 0; server < space_.servers() && named < kMaxNamedMissing;
       ++server) {
    if (job->members[server]) continue;
    names += fmt::format("{}{}", named == 0 ? "" : ", ", space_.text(server));
    ++named;
  }
  if (count > named) names += fmt::format(" and {} more", count - named);
  return fmt::format("{} of {} trainers {} not joined job \"{}\": server{} {}", count,
                     space_.servers(), count == 1 ? "has" : "have", job->name,
                     count == 1 ? "" : "s", names);
}

}  // namespace gradcube::control
