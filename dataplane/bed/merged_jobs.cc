#include "dataplane/bed/merged_jobs.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace gradcube::dataplane {

using Json = nlohmann::ordered_json;

namespace {

constexpr std::array<std::string_view, 4> kStates = {"gathering", "running", "stopping", "aborted"};

std::size_t order_of(const Json& job) {
  return static_cast<std::size_t>(
      std::find(kStates.begin(), kStates.end(), job.value("state", "")) - kStates.begin());
}

std::uint64_t count_of(const Json& object, const char* key) {
  return object.contains(key) && object[key].is_number_integer() ? object[key].get<std::uint64_t>()
                                                                 : 0;
}

// What reports of one job have in common, and of no two.
std::string key_of(const Json& report) {
  constexpr std::array<const char*, 7> kKeys = {
      "name", "id", "lanes", "weight", "reproducible", "members", "trainers_per_server"};
  Json all = Json::array();
  for (const char* key : kKeys) all.push_back(report.value(key, Json()));
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

void add_report(Json& job, const Json& report) {
  for (const Json& trainer : report.value("trainers", Json::array())) {
    job["trainers"].push_back(trainer);
  }
  if (order_of(report) >= order_of(job)) {
    if (!report.value("why", "").empty()) job["why"] = report["why"];
    job["state"] = report.value("state", "");
  }
  job["epoch"] = std::max(count_of(job, "epoch"), count_of(report, "epoch"));
  job["packets_reserved_bytes"] =
      count_of(job, "packets_reserved_bytes") + count_of(report, "packets_reserved_bytes");
  const std::uint64_t windows[] = {count_of(job, "window"), count_of(report, "window")};
  job["window"] = std::min(windows[0], windows[1]) == 0 ? std::max(windows[0], windows[1])
                                                        : std::min(windows[0], windows[1]);
  job["collectives"] = std::min(count_of(job, "collectives"), count_of(report, "collectives"));
  job["waiting_ms"] = std::max(count_of(job, "waiting_ms"), count_of(report, "waiting_ms"));
}

Json not_joined(const Json& job) {
  Json missing = Json::array();
  std::map<Json, int> joined;
  for (const Json& trainer : job["trainers"]) ++joined[trainer.value("address", Json())];
  for (const Json& member : job.value("members", Json::array())) {
    if (joined[member] < job.value("trainers_per_server", 1)) missing.push_back(member);
  }
  return missing;
}

// Those that have submitted nothing beyond what all have completed, if others have.
Json behind(const Json& job) {
  const Json& trainers = job["trainers"];
  std::uint64_t completed_by_all = UINT64_MAX;
  for (const Json& trainer : trainers) {
    completed_by_all = std::min(completed_by_all, count_of(trainer, "completed"));
  }
  Json late = Json::array();
  for (const Json& trainer : trainers) {
    if (count_of(trainer, "submitted") <= completed_by_all) late.push_back(trainer["address"]);
  }
  return late.size() < trainers.size() ? late : Json::array();
}

void finish(Json& job) {
  auto& trainers = job["trainers"];
  std::stable_sort(trainers.begin(), trainers.end(), [](const Json& a, const Json& b) {
    return std::pair(a.value("address", Json()), count_of(a, "local")) <
           std::pair(b.value("address", Json()), count_of(b, "local"));
  });
  job["waiting_for"] = Json::array();
  if (job["state"] == kStates[0]) job["waiting_for"] = not_joined(job);
  if (job["state"] == kStates[1]) job["waiting_for"] = behind(job);
  if (!job["waiting_for"].empty() && job["waiting_ms"] == 0) job["waiting_ms"] = nullptr;
}

}  // namespace

Json merged_jobs(const Json& reports) {
  Json jobs = Json::array();
  std::unordered_map<std::string, std::size_t> places;
  for (const Json& report : reports) {
    const auto [known, is_new] = places.try_emplace(key_of(report), jobs.size());
    if (is_new) {
      jobs.push_back(report);
    } else {
      add_report(jobs[known->second], report);
    }
  }
  for (Json& job : jobs) finish(job);
  std::stable_partition(jobs.begin(), jobs.end(),
                        [](const Json& job) { return job["state"] != kStates[3]; });
  return jobs;
}

}  // namespace gradcube::dataplane
