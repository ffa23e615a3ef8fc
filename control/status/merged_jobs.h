// Jobs, put together from what each server's daemon knows of its own trainers.
//
// Reports of the same name, id and options are one job. It is in the state that is the furthest of
// those reported: gathering, running, stopping, aborted. It has the collectives that all of its
// trainers have completed, and it waits for the members that have not joined, or, while it runs,
// for those that are late (job_progress.h). How long is known only where a daemon says so; else
// "waiting_ms" is null.
//
// Pure functions.
#ifndef GRADCUBE_CONTROL_STATUS_MERGED_JOBS_H_
#define GRADCUBE_CONTROL_STATUS_MERGED_JOBS_H_

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

namespace gradcube::control::status {

// In the order in which a job goes through them.
inline constexpr std::array<std::string_view, 4> kJobStates = {"gathering", "running", "stopping",
                                                               "aborted"};

// reports: the "jobs" of all daemons, one after another. Those that are aborted come last.
nlohmann::ordered_json merged_jobs(const nlohmann::ordered_json& reports);

}  // namespace gradcube::control::status

#endif  // GRADCUBE_CONTROL_STATUS_MERGED_JOBS_H_
