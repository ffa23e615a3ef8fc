// `gradcube up` and `gradcube down` where each server has a host of its own.
//
// Errors are control::SetupError and name the hosts. One thread.
#ifndef GRADCUBE_CLI_UP_ON_HOSTS_H_
#define GRADCUBE_CLI_UP_ON_HOSTS_H_

#include <nlohmann/json.hpp>
#include <vector>

#include "cli/checks/link_check.h"
#include "cli/cluster/cluster_hosts.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// What a host says of its daemon, and what the links are like.
struct HostsStarted {
  std::vector<nlohmann::json> daemons;  // in the hosts' order
  std::vector<LinkResult> links;        // none without a check
};

// Starts a daemon on each host, and leaves them running if all have started and all links are as
// configured; else none is left. directory: this host's, where later commands find the hosts.
HostsStarted up_on_hosts(const ClusterHosts& hosts, const control::RunDirectory& directory,
                         bool with_check);

// Ends them. Those of hosts that do not answer are named, and may be asked again.
void down_on_hosts(const ClusterHosts& hosts, const control::RunDirectory& directory);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_ON_HOSTS_H_
