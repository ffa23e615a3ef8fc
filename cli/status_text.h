// The daemon's status as people read it. A key that this version does not know is left out, one
// that is missing shows as
// "-": tool and daemon may be of different versions.
#ifndef GRADCUBE_CLI_STATUS_TEXT_H_
#define GRADCUBE_CLI_STATUS_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// Flows are n times as many as servers: without `all_flows` they are shown only when they are few.
std::string status_text(const nlohmann::json& status, bool all_flows);

// The first lines of it alone: what runs, with which settings.
std::string status_summary(const nlohmann::json& status);

// "bcube:3,2" from {"kind":"bcube","n":3,"k":2,"servers":9}: what --topology takes. Empty when it
// cannot be told.
std::string topology_text(const nlohmann::json& topology);

// "loss 1 %, reorder 5 %, seed 7"; "none" without any.
std::string impairments_text(const nlohmann::json& impairments);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_TEXT_H_
