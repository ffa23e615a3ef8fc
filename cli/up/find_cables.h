// How the ports of some hosts are cabled.
//
// Each host has `gradcube at-host`, which holds a PortProbe. All send, then all tell what they have
// heard, until the cables form a topology and no port is silent that has somebody at its other end,
// or the time is up: a switch may take its time to forward.
//
// Errors are control::SetupError and name the hosts. One thread.
#ifndef GRADCUBE_CLI_UP_FIND_CABLES_H_
#define GRADCUBE_CLI_UP_FIND_CABLES_H_

#include <string>
#include <vector>

#include "cli/cluster/cluster_hosts.h"
#include "cli/setup/cables.h"
#include "cli/setup/recognise.h"

namespace gradcube::cli {

struct FoundCables {
  Cables cables;
  Recognised recognised;
};

// interfaces: of each host; none for all that are free.
FoundCables find_cables(const ClusterHosts& hosts, const std::vector<std::string>& interfaces,
                        double wait_seconds);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_UP_FIND_CABLES_H_
