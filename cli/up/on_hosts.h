// `gradcube up`, `down` and `setup` where each server has a host of its own.
//
// Errors are control::SetupError and name the hosts. One thread.
#ifndef GRADCUBE_CLI_UP_ON_HOSTS_H_
#define GRADCUBE_CLI_UP_ON_HOSTS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/checks/link_check.h"
#include "cli/cluster/cluster_hosts.h"
#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// Hosts as the options --hosts, --launcher and --program name them; without the last two by ssh,
// and the path that this program has. Throws a UsageError.
ClusterHosts hosts_reached(const std::string& launcher, const std::string& program,
                           std::vector<std::string> names,
                           const control::ClusterSettings& settings);

// What a host says of its daemon, and what the links are like.
struct HostsStarted {
  std::vector<nlohmann::json> daemons;  // in the hosts' order
  std::vector<LinkResult> links;        // none without a check
};

// Starts a daemon on each host, and leaves them running if all have started and all links are as
// configured; else none is left. directory: this host's, where later commands find the hosts.
HostsStarted up_on_hosts(const ClusterHosts& hosts, const control::RunDirectory& directory,
                         bool with_check);

// Where no server is on this host, or its daemon has died, no lock holds the run directory: throws
// where that names a cluster, which would be forgotten.
void refuse_cluster_elsewhere(const control::RunDirectory& directory);

// Ends them. Those of hosts that do not answer are named, and may be asked again.
void down_on_hosts(const ClusterHosts& hosts, const control::RunDirectory& directory);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_ON_HOSTS_H_
