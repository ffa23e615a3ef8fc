// The jobs of the daemon's status as people read them: which trainers there are, how far each is,
// and for whom a job waits.
#ifndef GRADCUBE_CLI_STATUS_JOB_TEXT_H_
#define GRADCUBE_CLI_STATUS_JOB_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// A table of the jobs, one of the lanes of those that asked for other than the default, and one of
// all their trainers.
std::string jobs_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_JOB_TEXT_H_
