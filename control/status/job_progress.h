// How far a job is, by what its trainers have submitted and completed: the one rule for whom it
// waits.
//
// Server: what names a server; it has an order. Pure functions.
#ifndef GRADCUBE_CONTROL_STATUS_JOB_PROGRESS_H_
#define GRADCUBE_CONTROL_STATUS_JOB_PROGRESS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

namespace gradcube::control::status {

// Of one trainer; collectives of each lane. All trainers of a job have the same lanes.
template <typename Server>
struct TrainerProgress {
  Server server;
  std::vector<std::uint64_t> submitted;
  std::vector<std::uint64_t> completed;
};

template <typename Server>
struct JobProgress {
  std::uint64_t collectives = 0;  // completed by all of its trainers, over all lanes
  // Servers whose trainers have not submitted the oldest collective of a lane that is not completed
  // everywhere, if another trainer has. Ascending.
  std::vector<Server> late;
};

template <typename Server>
JobProgress<Server> progress_of(const std::vector<TrainerProgress<Server>>& trainers) {
  JobProgress<Server> job;
  std::set<Server> late;
  const std::size_t lanes = trainers.empty() ? 0 : trainers.front().submitted.size();
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    std::uint64_t completed_by_all = UINT64_MAX;
    for (const auto& one : trainers) {
      completed_by_all = std::min(completed_by_all, one.completed[lane]);
    }
    job.collectives += completed_by_all;
    std::vector<Server> behind;
    for (const auto& one : trainers) {
      if (one.submitted[lane] <= completed_by_all) behind.push_back(one.server);
    }
    if (behind.size() < trainers.size()) late.insert(behind.begin(), behind.end());
  }
  job.late.assign(late.begin(), late.end());
  return job;
}

// The members where fewer trainers have joined than there are to be on each.
template <typename Server, typename Members>
std::vector<Server> not_joined(const Members& members, std::uint64_t trainers_per_server,
                               const std::vector<TrainerProgress<Server>>& trainers) {
  std::map<Server, std::uint64_t> joined;
  for (const auto& one : trainers) ++joined[one.server];
  std::vector<Server> missing;
  for (const Server& member : members) {
    if (joined[member] < trainers_per_server) missing.push_back(member);
  }
  return missing;
}

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_JOB_PROGRESS_H_
