// The topology that a command's options describe, where no cluster needs to run.
#ifndef GRADCUBE_CLI_PLAN_ASKED_TOPOLOGY_H_
#define GRADCUBE_CLI_PLAN_ASKED_TOPOLOGY_H_

#include <string>

#include "control/plan/base/topology.h"

namespace gradcube::cli {

// As the settings of these names have them; empty: not given, as only the first cannot be. Throws a
// UsageError.
control::Topology asked_topology(const std::string& topology, const std::string& absent,
                                 const std::string& rate = "",
                                 const std::string& oversubscription = "");

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_ASKED_TOPOLOGY_H_
