// How sentences for the user name collectives, and those on which the trainers of a job disagree.
#ifndef GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_
#define GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_

#include <cstddef>
#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "control/jobs/job_messages.h"
#include "control/jobs/join_request.h"

namespace gradcube::control {

// "collective 5 of job "mnist"", with the lane where the job has several: "collective 5 of lane 1
// of job ...". Of kMessageNumber: "a message of job ...".
std::string collective_text(const std::string& job, std::size_t lanes, CollectiveName collective);

struct Submitted {
  bcube::ServerId server = 0;
  std::string what;  // "all_reduce of 9 float32 sum", "nothing yet"
};

// Who submitted what, and where it was met ("server [1,0], thread 0, step 1"): one sentence.
// Servers that submitted the same are named together, in the order of `submitted`.
std::string disagreement_text(const std::string& job, std::size_t lanes, CollectiveName collective,
                              const std::vector<Submitted>& submitted, const std::string& met,
                              const bcube::AddressSpace& space);

// Which collectives a reset fails: "; failed: collectives 2 to 6", with the lane where the job has
// several. The trainers' next collectives are those behind them.
std::string failed_text(const JobCut& cut);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_
