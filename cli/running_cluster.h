// What a command that runs collectives has to know of the running cluster, from the daemon's status.
#ifndef GRADCUBE_CLI_RUNNING_CLUSTER_H_
#define GRADCUBE_CLI_RUNNING_CLUSTER_H_

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "control/plan/topology.h"
#include "control/settings/link_rates.h"

namespace gradcube::cli {

struct RunningCluster {
  control::Topology topology;  // with the rates of its links
  control::LinkRates rates;
  // Of the servers on this host: where they take trainers.
  std::map<control::ServerId, std::string> sockets;
};

// Throws a UsageError on a status that no daemon could have written.
RunningCluster read_running_cluster(const nlohmann::json& status);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_RUNNING_CLUSTER_H_
