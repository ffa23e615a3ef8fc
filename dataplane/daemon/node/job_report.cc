#include "dataplane/daemon/node/job_report.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <numeric>
#include <utility>

#include "aggregation/element.h"
#include "control/jobs/collective_text.h"
#include "control/status/job_progress.h"
#include "control/status/merged_jobs.h"

namespace gradcube::dataplane {

using control::CollectiveKind;

namespace {

std::uint64_t sum(const control::LaneNumbers& numbers) {
  return std::accumulate(numbers.begin(), numbers.end(), std::uint64_t{0});
}

void count(JobFacts& job, const std::vector<bcube::ServerId>& servers) {
  std::vector<control::status::TrainerProgress<bcube::ServerId>> trainers;
  for (const JobFacts::Trainer& trainer : job.trainers) {
    trainers.push_back({trainer.server, trainer.counts.published, trainer.counts.completed});
  }
  const auto progress = control::status::progress_of(trainers);
  job.collectives = progress.collectives;
  if (job.state == JobState::running) job.waiting_for = progress.late;
  if (job.state != JobState::gathering) return;
  job.waiting_for = not_joined(job.options.members, job.options.trainers, trainers);
  std::erase_if(job.waiting_for, [&](bcube::ServerId server) {
    return !std::ranges::binary_search(servers, server);
  });
}

}  // namespace

std::string_view state_name(JobState state) {
  return control::status::kJobStates.at(static_cast<std::size_t>(state));
}

std::uint64_t JobFacts::Trainer::submitted() const { return sum(counts.published); }

std::uint64_t JobFacts::Trainer::completed() const { return sum(counts.completed); }

std::vector<JobFacts> job_facts(const std::vector<MemberFacts>& trainers,
                                const std::vector<bcube::ServerId>& servers) {
  std::vector<JobFacts> jobs;
  for (const MemberFacts& trainer : trainers) {
    // Before its leader has answered, two trainers may ask for the same name and other lanes.
    const auto known = std::ranges::find_if(jobs, [&](const JobFacts& job) {
      return job.name == trainer.name && job.owner == trainer.owner && job.id == trainer.id &&
             job.options == trainer.options;
    });
    JobFacts& job = known == jobs.end() ? jobs.emplace_back() : *known;
    job.name = trainer.name;
    job.owner = trainer.owner;
    job.id = trainer.id;
    job.options = trainer.options;
    job.epoch = std::max(job.epoch, trainer.epoch);
    if (trainer.state >= job.state && !trainer.why.empty()) job.why = trainer.why;
    job.state = std::max(job.state, trainer.state);
    if (trainer.window != 0) {
      job.window = job.window == 0 ? trainer.window : std::min(job.window, trainer.window);
    }
    job.reserved_bytes += trainer.reserved_bytes;
    if (trainer.key != 0) job.key = trainer.key;
    job.trainers.push_back(static_cast<const JobFacts::Trainer&>(trainer));
  }
  for (JobFacts& job : jobs) {
    std::ranges::sort(job.trainers, [](const auto& a, const auto& b) {
      return std::pair(a.server, a.local) < std::pair(b.server, b.local);
    });
    count(job, servers);
  }
  std::stable_partition(jobs.begin(), jobs.end(),
                        [](const JobFacts& job) { return job.state != JobState::aborted; });
  return jobs;
}

void WaitTimes::note(const std::vector<JobFacts>& jobs, control::Instant now) {
  std::map<Key, Wait> waits;
  for (const JobFacts& job : jobs) {
    if (job.waiting_for.empty()) continue;
    const Key key = key_of(job);
    const auto before = waits_.find(key);
    waits[key] = before != waits_.end() && before->second.is_of(job)
                     ? before->second
                     : Wait{job.collectives, job.state == JobState::gathering, now};
  }
  waits_ = std::move(waits);
}

WaitTimes::Key WaitTimes::key_of(const JobFacts& job) {
  return {job.name, job.owner.high, job.owner.low, job.id};
}

bool WaitTimes::Wait::is_of(const JobFacts& job) const {
  return collectives == job.collectives && to_join == (job.state == JobState::gathering);
}

std::int64_t WaitTimes::milliseconds(const JobFacts& job, control::Instant now) const {
  const auto wait = waits_.find(key_of(job));
  if (job.waiting_for.empty() || wait == waits_.end() || !wait->second.is_of(job)) return 0;
  return std::chrono::duration_cast<std::chrono::milliseconds>(now - wait->second.since).count();
}

std::string describe(const std::optional<CollectiveRequest>& request) {
  if (!request.has_value()) return "nothing yet";
  std::string text(control::collective_kind_name(request->kind));
  if (request->kind == CollectiveKind::barrier) return text;
  if (request->gathered == shared::Gathered::digests) return "compare";
  if (request->gathered == shared::Gathered::steps) return "a call of all trainers about a hub";
  text += fmt::format(" of {} {}", request->count, aggregation::data_type_name(request->dtype));
  if (control::reduces(request->kind)) {
    text += fmt::format(" {}", aggregation::operation_name(request->operation));
  }
  if (request->kind == CollectiveKind::broadcast)
    text += fmt::format(" from rank {}", request->root);
  if (request->kind == CollectiveKind::reduce) text += fmt::format(" to rank {}", request->root);
  return text;
}

std::string describe(const std::vector<std::optional<CollectiveRequest>>& requests) {
  std::vector<std::string> texts;
  for (const auto& request : requests) texts.push_back(describe(request));
  if (std::ranges::adjacent_find(texts, std::not_equal_to()) == texts.end()) {
    return texts.front();
  }
  for (std::size_t local = 0; local < texts.size(); ++local) {
    texts[local] = fmt::format("trainer {}: {}", local, texts[local]);
  }
  return fmt::format("{}", fmt::join(texts, ", "));
}

namespace {

std::string thread_text(const LanePlans& plans, unsigned lane, unsigned thread) {
  if (lane >= plans.size() || plans[lane].choice->plans() == 1) {
    return fmt::format("thread {}", thread);
  }
  const control::PlanChoice& choice = *plans[lane].choice;
  const unsigned plan = choice.plan_of_thread(thread);
  return fmt::format("thread {} of {}", thread - choice.first_thread(plan),
                     choice.plan(plan).algorithm());
}

}  // namespace

std::string describe_place(const EngineEvent& event, const LanePlans& plans,
                           const bcube::AddressSpace& space) {
  const Disagreement& disagreement = event.disagreement;
  return fmt::format("server {}, {}, step {}", space.text(event.server),
                     thread_text(plans, disagreement.lane, disagreement.thread), disagreement.step);
}

std::string describe_overflow(const control::JobDescriptor& job, const EngineEvent& event,
                              const LanePlans& plans, const bcube::AddressSpace& space) {
  const Overflow& overflow = event.overflow;
  const std::string_view type = aggregation::data_type_name(overflow.dtype);
  const bool wider_integers = overflow.dtype == aggregation::DataType::int32;
  return fmt::format(
      "{}: the {} average overflowed in elements {} to {}: a partial sum does not fit in {} (at "
      "server {}, {}, step {}); average as {}float64, or average smaller values",
      control::collective_text(job.name, job.options.lanes.size(),
                               {overflow.lane, overflow.collective}),
      type, overflow.first_element, overflow.first_element + overflow.elements - 1, type,
      space.text(event.server), thread_text(plans, overflow.lane, overflow.thread), overflow.step,
      wider_integers ? "int64 or " : "");
}

std::string describe_common(const std::optional<control::LaneNumbers>& common) {
  if (!common.has_value()) {
    return "; which collectives ended on all of the others could not be found out";
  }
  if (sum(*common) == 0) return "; no collective ended on all of the others";
  if (common->size() == 1) {
    return fmt::format("; collective {} was the last that ended alike on all of the others",
                       common->front());
  }
  std::vector<std::string> lanes;
  for (std::size_t lane = 0; lane < common->size(); ++lane) {
    lanes.push_back(fmt::format("{} of lane {}", (*common)[lane], lane));
  }
  return fmt::format("; the last collectives that ended alike on all of the others: {}",
                     fmt::join(lanes, ", "));
}

}  // namespace gradcube::dataplane
