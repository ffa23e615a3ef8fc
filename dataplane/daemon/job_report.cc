#include "dataplane/daemon/job_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "aggregation/element.h"

namespace gradcube::dataplane {

namespace {

// The collective that the job's trainers have to submit next; 0 while they have to join.
std::uint64_t collective_awaited(const JobFacts& job) {
  return job.state == control::state_name(control::JobState::gathering) ? 0 : job.collectives + 1;
}

std::string describe(const std::optional<CollectiveRequest>& request) {
  if (!request.has_value()) return "nothing yet";
  return fmt::format("{} {} {}", request->count, aggregation::data_type_name(request->dtype),
                     aggregation::operation_name(request->operation));
}

}  // namespace

JobFacts job_facts(const control::Job& job, std::vector<JobFacts::Trainer> trainers) {
  JobFacts facts;
  facts.name = job.name;
  facts.id = job.id;
  facts.epoch = job.epoch;
  facts.state = control::state_name(job.state);
  facts.trainers = std::move(trainers);
  if (!facts.trainers.empty()) {
    facts.collectives =
        std::min_element(facts.trainers.begin(), facts.trainers.end(),
                         [](const auto& a, const auto& b) { return a.completed < b.completed; })
            ->completed;
  }
  if (job.state == control::JobState::gathering) {
    for (bcube::ServerId server = 0; server < job.members.size(); ++server) {
      if (!job.members[server]) facts.waiting_for.push_back(server);
    }
  } else if (job.state == control::JobState::running) {
    for (const JobFacts::Trainer& trainer : facts.trainers) {
      if (trainer.submitted <= facts.collectives) facts.waiting_for.push_back(trainer.server);
    }
    if (facts.waiting_for.size() == facts.trainers.size()) facts.waiting_for.clear();
  }
  return facts;
}

void WaitTimes::note(const std::vector<JobFacts>& jobs, SteadyClock::time_point now) {
  std::map<std::uint32_t, Wait> waits;
  for (const JobFacts& job : jobs) {
    if (job.waiting_for.empty()) continue;
    const std::uint64_t collective = collective_awaited(job);
    const auto before = waits_.find(job.id);
    const bool same = before != waits_.end() && before->second.collective == collective;
    waits[job.id] = same ? before->second : Wait{collective, now};
  }
  waits_ = std::move(waits);
}

std::int64_t WaitTimes::milliseconds(const JobFacts& job, SteadyClock::time_point now) const {
  const auto wait = waits_.find(job.id);
  if (job.waiting_for.empty() || wait == waits_.end() ||
      wait->second.collective != collective_awaited(job)) {
    return 0;
  }
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - wait->second.since).count();
}

std::string explain_wait(const control::Job& job, const std::string& missing,
                         const std::vector<JobFacts::Trainer>& trainers, std::uint64_t request,
                         const bcube::AddressSpace& space) {
  if (!missing.empty()) return missing;
  std::vector<std::string> late;
  std::vector<std::string> at_work;
  for (const JobFacts::Trainer& trainer : trainers) {
    const std::string server = space.text(trainer.server);
    if (trainer.submitted < request) {
      late.push_back(fmt::format("{} (pid {})", server, trainer.pid));
    } else if (trainer.completed < request) {
      at_work.push_back(server);
    }
  }
  if (!late.empty()) {
    return fmt::format(
        "collective {} of job \"{}\" waits for trainers that have not submitted it: {}", request,
        job.name, fmt::join(late, ", "));
  }
  if (at_work.empty()) {
    return fmt::format("collective {} of job \"{}\" has just ended", request, job.name);
  }
  return fmt::format(
      "all {} trainers have submitted collective {} of job \"{}\"; it is under way at {}",
      job.joined, request, job.name, fmt::join(at_work, " "));
}

std::string describe_disagreement(const control::Job& job, const EngineEvent& event,
                                  const std::vector<SubmittedBy>& trainers,
                                  const bcube::AddressSpace& space) {
  std::map<std::string, std::vector<std::string>> servers_by_request;
  for (const SubmittedBy& trainer : trainers) {
    servers_by_request[describe(trainer.request)].push_back(space.text(trainer.server));
  }
  std::vector<std::string> parts;
  for (const auto& [request, servers] : servers_by_request) {
    parts.push_back(fmt::format("{} submitted {}", fmt::join(servers, " "), request));
  }
  return fmt::format(
      "collective {} of job \"{}\": the trainers disagree on count, type or operation: {} (met at "
      "server {}, thread {}, step {}); all trainers must submit the same collectives in the same "
      "order",
      event.disagreement.collective, job.name, fmt::join(parts, "; "), space.text(event.server),
      event.disagreement.thread, event.disagreement.step);
}

std::string describe_overflow(const control::Job& job, const EngineEvent& event,
                              const bcube::AddressSpace& space) {
  const Overflow& overflow = event.overflow;
  const std::string_view type = aggregation::data_type_name(overflow.dtype);
  const bool wider_integers = overflow.dtype == aggregation::DataType::int32;
  return fmt::format(
      "collective {} of job \"{}\": the {} average overflowed in elements {} to {}: a partial sum "
      "does not fit in {} (at server {}, thread {}, step {}); average as {}float64, or average "
      "smaller values",
      overflow.collective, job.name, type, overflow.first_element,
      overflow.first_element + overflow.elements - 1, type, space.text(event.server),
      overflow.thread, overflow.step, wider_integers ? "int64 or " : "");
}

}  // namespace gradcube::dataplane
