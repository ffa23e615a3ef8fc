// The running cluster, as the commands that measure it or plan for it see it: from its daemon's
// status.
#ifndef GRADCUBE_CLI_CLUSTER_RUNNING_CLUSTER_H_
#define GRADCUBE_CLI_CLUSTER_RUNNING_CLUSTER_H_

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "control/settings/link_rates.h"
#include "control/settings/run_directory.h"
#include "control/settings/server_roles.h"

#include "gradcube/gradcube.hpp"

namespace gradcube::cli {

// A trainer that a command makes or starts: its rank, whose server is here, and where that takes
// trainers.
struct PerfTrainer {
  control::Rank rank = 0;
  unsigned local = 0;  // of the server's trainers
  std::string socket;
};

struct RunningCluster {
  control::Topology topology;        // with its rates
  control::Aggregators aggregators;  // servers that take no trainers
  control::LinkRates rates;
  nlohmann::json rate_bps;                             // as the status has them
  std::map<control::ServerId, std::string> sockets{};  // of the servers that are on this host
  // Why the daemons of these servers, and those of switches, are gone, where each has its own.
  std::map<control::ServerId, std::string> ended{};
  std::vector<std::string> ended_switches{};
  // What a server says whose ports stand at one address, as those do that share a NIC; else empty.
  std::string shared_address{};
  bool unauthenticated = false;  // frames leave its processes without a MAC
  // Of those on this host, rounded up: whose pollers run on one core.
  unsigned servers_per_core = 1;
};

// Throws a UsageError on a status that no daemon could have written.
RunningCluster read_running_cluster(const nlohmann::json& status);

// "0,0 0,1 0,2" (as parse_server() reads each); empty for "". Throws UsageError.
std::vector<control::ServerId> members_of(const control::Topology& topology,
                                          const std::string& text);

// Of a job on these servers; on all that take trainers where none is named. Throws a UsageError
// that begins with `where`.
control::Placement placement_of(const RunningCluster& cluster,
                                const std::vector<control::ServerId>& members,
                                std::string_view where);

// Asks the daemon. Throws a SetupError where none runs.
RunningCluster running_cluster(const control::RunDirectory& directory);

// What is wrong where daemons of these servers, or of switches, have ended, and what to do. Empty
// where all live.
std::string ended_daemons(const RunningCluster& cluster, const control::Placement& placement);
// Throws it as a SetupError.
void require_daemons(const RunningCluster& cluster, const control::Placement& placement);
// For the message of an error that just came: "; ..." with what has ended meanwhile; else empty. A
// daemon's socket closes a little before its end is seen: for that error, waits up to a second.
std::string ended_meanwhile(const Error& error, const control::RunDirectory& directory,
                            const control::Placement& placement);

// "1000 Mbit/s"; "10000,1000 Mbit/s" from level 0 up where levels differ.
std::string rates_text(const RunningCluster& cluster);

// The trainers whose servers are here, and where these take them.
std::vector<PerfTrainer> trainers_of(const RunningCluster& cluster,
                                     const control::Placement& placement);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_CLUSTER_RUNNING_CLUSTER_H_
