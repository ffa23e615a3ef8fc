// The jobs of a test bed, put together from what each server's daemon knows of its own trainer.
//
// Reports of the same name, id and options are one job. It is in the state that is the furthest of
// those reported: gathering, running, stopping, aborted. It has the collectives that all of its
// trainers have completed, and it waits for the members that have not joined, or, while it runs,
// for those that have submitted less than the others.
//
// Takes time in the length of the reports, but for sorting a job's trainers.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_MERGED_JOBS_H_
#define GRADCUBE_DATAPLANE_BED_MERGED_JOBS_H_

#include <nlohmann/json.hpp>

namespace gradcube::dataplane {

// reports: the "jobs" of all daemons, one after another.
nlohmann::ordered_json merged_jobs(const nlohmann::ordered_json& reports);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_MERGED_JOBS_H_
