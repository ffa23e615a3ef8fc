// The hubs of the daemon's status as people read them: those that a server aggregates for jobs that
// have no trainers there.
#ifndef GRADCUBE_CLI_STATUS_HUB_TEXT_H_
#define GRADCUBE_CLI_STATUS_HUB_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// A table of them; empty where there are none.
std::string hubs_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_HUB_TEXT_H_
