// How sentences for the user name a collective.
#ifndef GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_
#define GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_

#include <cstddef>
#include <string>

#include "control/jobs/join_request.h"

namespace gradcube::control {

// "collective 5 of job "mnist"", with the lane where the job has several: "collective 5 of lane 1
// of job ...". Of kMessageNumber: "a message of job ...".
std::string collective_text(const std::string& job, std::size_t lanes, CollectiveName collective);

}  // namespace gradcube::control

#endif  // GRADCUBE_CONTROL_JOBS_COLLECTIVE_TEXT_H_
