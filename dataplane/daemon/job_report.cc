#include "dataplane/daemon/job_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <numeric>
#include <set>
#include <utility>

#include "aggregation/element.h"

namespace gradcube::dataplane {

using control::CollectiveKind;

namespace {

bool gathers(const JobFacts& job) {
  return job.state == control::state_name(control::JobState::gathering);
}

std::string describe(const std::optional<CollectiveRequest>& request) {
  if (!request.has_value()) return "nothing yet";
  std::string text(control::collective_kind_name(request->kind));
  if (request->kind == CollectiveKind::barrier) return text;
  text += fmt::format(" of {} {}", request->count, aggregation::data_type_name(request->dtype));
  if (control::reduces(request->kind)) {
    text += fmt::format(" {}", aggregation::operation_name(request->operation));
  }
  if (request->kind == CollectiveKind::broadcast)
    text += fmt::format(" from rank {}", request->root);
  if (request->kind == CollectiveKind::reduce) text += fmt::format(" to rank {}", request->root);
  return text;
}

// "collective 5 of job "mnist"", with the lane where the job has several.
std::string collective_text(const control::Job& job, CollectiveName collective) {
  const std::string lane =
      job.options.lanes.size() > 1 ? fmt::format(" of lane {}", collective.lane) : "";
  return fmt::format("collective {}{} of job \"{}\"", collective.number, lane, job.name);
}

// The servers whose trainers have not submitted the oldest collective of the lane that is not
// completed everywhere, if others have.
void add_late(const std::vector<JobFacts::Trainer>& trainers, std::size_t lane,
              std::uint64_t completed_by_all, std::set<bcube::ServerId>& late) {
  std::vector<bcube::ServerId> behind;
  for (const JobFacts::Trainer& trainer : trainers) {
    if (trainer.lanes[lane].submitted <= completed_by_all) behind.push_back(trainer.server);
  }
  if (behind.size() < trainers.size()) late.insert(behind.begin(), behind.end());
}

}  // namespace

std::uint64_t JobFacts::Trainer::submitted() const {
  return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Lane& lane) { return sum + lane.submitted; });
}

std::uint64_t JobFacts::Trainer::completed() const {
  return std::accumulate(lanes.begin(), lanes.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const Lane& lane) { return sum + lane.completed; });
}

JobFacts job_facts(const control::Job& job, std::vector<JobFacts::Trainer> trainers) {
  JobFacts facts;
  facts.name = job.name;
  facts.id = job.id;
  facts.epoch = job.epoch;
  facts.state = control::state_name(job.state);
  facts.lanes = job.options.lanes;
  facts.weight = job.options.weight;
  facts.trainers = std::move(trainers);
  std::set<bcube::ServerId> late;
  for (std::size_t lane = 0; !facts.trainers.empty() && lane < job.options.lanes.size(); ++lane) {
    std::uint64_t completed_by_all = UINT64_MAX;
    for (const JobFacts::Trainer& trainer : facts.trainers) {
      completed_by_all = std::min(completed_by_all, trainer.lanes[lane].completed);
    }
    facts.collectives += completed_by_all;
    add_late(facts.trainers, lane, completed_by_all, late);
  }
  if (job.state == control::JobState::gathering) {
    for (const control::Job::Member& member : job.members) {
      if (!member.trainer.has_value()) facts.waiting_for.push_back(member.server);
    }
  } else if (job.state == control::JobState::running) {
    facts.waiting_for.assign(late.begin(), late.end());
  }
  return facts;
}

void WaitTimes::note(const std::vector<JobFacts>& jobs, SteadyClock::time_point now) {
  std::map<std::uint32_t, Wait> waits;
  for (const JobFacts& job : jobs) {
    if (job.waiting_for.empty()) continue;
    const auto before = waits_.find(job.id);
    waits[job.id] = before != waits_.end() && before->second.is_of(job)
                        ? before->second
                        : Wait{job.collectives, gathers(job), now};
  }
  waits_ = std::move(waits);
}

bool WaitTimes::Wait::is_of(const JobFacts& job) const {
  return collectives == job.collectives && to_join == gathers(job);
}

std::int64_t WaitTimes::milliseconds(const JobFacts& job, SteadyClock::time_point now) const {
  const auto wait = waits_.find(job.id);
  if (job.waiting_for.empty() || wait == waits_.end() || !wait->second.is_of(job)) return 0;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - wait->second.since).count();
}

std::string explain_wait(const control::Job& job, const std::string& missing,
                         const std::vector<JobFacts::Trainer>& trainers, CollectiveName collective,
                         const bcube::AddressSpace& space) {
  if (!missing.empty()) return missing;
  std::vector<std::string> late;
  std::vector<std::string> at_work;
  for (const JobFacts::Trainer& trainer : trainers) {
    const std::string server = space.text(trainer.server);
    const JobFacts::Trainer::Lane& lane = trainer.lanes[collective.lane];
    if (lane.submitted < collective.number) {
      late.push_back(fmt::format("{} (pid {})", server, trainer.pid));
    } else if (lane.completed < collective.number) {
      at_work.push_back(server);
    }
  }
  const std::string name = collective_text(job, collective);
  if (!late.empty()) {
    return fmt::format("{} waits for trainers that have not submitted it: {}", name,
                       fmt::join(late, ", "));
  }
  if (at_work.empty()) return name + " has just ended";
  return fmt::format("all {} trainers have submitted {}; it is under way at {}", job.joined(), name,
                     fmt::join(at_work, " "));
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
      "{}: the trainers disagree on kind, count, type, operation or root: {} (met at server {}, "
      "thread {}, step {}); all trainers must submit the same collectives in the same order",
      collective_text(job, {event.disagreement.lane, event.disagreement.collective}),
      fmt::join(parts, "; "), space.text(event.server), event.disagreement.thread,
      event.disagreement.step);
}

std::string describe_overflow(const control::Job& job, const EngineEvent& event,
                              const bcube::AddressSpace& space) {
  const Overflow& overflow = event.overflow;
  const std::string_view type = aggregation::data_type_name(overflow.dtype);
  const bool wider_integers = overflow.dtype == aggregation::DataType::int32;
  return fmt::format(
      "{}: the {} average overflowed in elements {} to {}: a partial sum does not fit in {} (at "
      "server {}, thread {}, step {}); average as {}float64, or average smaller values",
      collective_text(job, {overflow.lane, overflow.collective}), type, overflow.first_element,
      overflow.first_element + overflow.elements - 1, type, space.text(event.server),
      overflow.thread, overflow.step, wider_integers ? "int64 or " : "");
}

}  // namespace gradcube::dataplane
