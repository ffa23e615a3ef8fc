// The flows and the counters of the daemon's status as people read them.
#ifndef GRADCUBE_CLI_STATUS_FLOW_TEXT_H_
#define GRADCUBE_CLI_STATUS_FLOW_TEXT_H_

#include <nlohmann/json.hpp>
#include <string>

namespace gradcube::cli {

// A table of them, or how many there are: many are listed only where all are asked for. Empty where
// there are none.
std::string flows_text(const nlohmann::json& status, bool all_flows);

// A table of what engines count; empty where there is nothing.
std::string counters_text(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_STATUS_FLOW_TEXT_H_
