#include "control/status/merged_jobs.h"

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "control/status/form.h"
#include "control/status/job_progress.h"

namespace gradcube::control::status {

namespace {

std::size_t order_of(const Json& job) {
  return static_cast<std::size_t>(
      std::find(kJobStates.begin(), kJobStates.end(), job.value("state", "")) - kJobStates.begin());
}

void take_furthest_state(Json& job, const Reports& reports) {
  for (const Json* report : reports) {
    if (order_of(*report) < order_of(job)) continue;
    if (!report->value("why", "").empty()) job["why"] = (*report)["why"];
    job["state"] = report->value("state", "");
  }
}

std::uint64_t count_in(const Json& object, const char* key) {
  return count_of(object.value(key, Json()));
}

// Of each lane; where not all daemons tell it, all lanes are taken for one.
std::vector<TrainerProgress<Json>> progress_told(const Json& job) {
  const auto by_lane = [&](const Json& trainer, const char* key) {
    return trainer.value(key, Json::array()).get<std::vector<std::uint64_t>>();
  };
  std::vector<TrainerProgress<Json>> lanes, sums;
  bool all = true;
  for (const Json& trainer : job["trainers"]) {
    const Json address = trainer.value("address", Json());
    sums.push_back({address, {count_in(trainer, "submitted")}, {count_in(trainer, "completed")}});
    lanes.push_back(
        {address, by_lane(trainer, "submitted_by_lane"), by_lane(trainer, "completed_by_lane")});
    all = all && lanes.back().submitted.size() == job["lanes"].size() &&
          lanes.back().completed.size() == job["lanes"].size();
  }
  return all ? lanes : sums;
}

void note_progress(Json& job) {
  const auto trainers = progress_told(job);
  const JobProgress<Json> progress = progress_of(trainers);
  job["collectives"] = progress.collectives;
  std::vector<Json> awaited;
  if (job["state"] == kJobStates[1]) awaited = progress.late;
  if (job["state"] == kJobStates[0]) {
    const std::uint64_t on_each = std::max<std::uint64_t>(1, count_in(job, "trainers_per_server"));
    awaited = not_joined(job["members"], on_each, trainers);
  }
  if (!awaited.empty() && job["waiting_ms"] == 0) job["waiting_ms"] = nullptr;
  job["waiting_for"] = std::move(awaited);
}

}  // namespace

Json merged_jobs(const Json& reports) {
  Json jobs = Json::array();
  for (const Reports& told : grouped(reports, {"name", "owner", "id", "lanes", "weight",
                                               "reproducible", "members", "trainers_per_server"})) {
    Json job = merged(form_of_status()["jobs"][0], told);
    for (const char* list : {"lanes", "members"}) job[list] = told.front()->value(list, Json());
    take_furthest_state(job, told);
    auto& trainers = job["trainers"];
    std::stable_sort(trainers.begin(), trainers.end(), [](const Json& a, const Json& b) {
      return std::pair(a.value("address", Json()), count_in(a, "local")) <
             std::pair(b.value("address", Json()), count_in(b, "local"));
    });
    note_progress(job);
    jobs.push_back(std::move(job));
  }
  std::stable_partition(jobs.begin(), jobs.end(),
                        [](const Json& job) { return job["state"] != kJobStates[3]; });
  return jobs;
}

}  // namespace gradcube::control::status
