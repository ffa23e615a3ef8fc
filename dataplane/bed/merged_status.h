// The status of a test bed, put together from those of its servers' daemons.
//
// It has the fields of an embedded cluster's status (status.h), so whoever reads that can read
// this. What counts is added up, what lists is joined, and a job has the trainers of all servers.
// In "servers" there is an entry for every server. It also says "pid", and "why" where the daemon
// has ended or does not answer; then it has no "trainers" and no "ports". How long a job has waited
// is known only where a daemon says so; else "waiting_ms" is null.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_MERGED_STATUS_H_
#define GRADCUBE_DATAPLANE_BED_MERGED_STATUS_H_

#include <nlohmann/json.hpp>
#include <string>
#include <sys/types.h>
#include <vector>

#include "control/settings/cluster_settings.h"

namespace gradcube::dataplane {

// What is known of a server.
struct ServerReport {
  bcube::ServerId server = 0;
  std::string socket;             // its trainers'
  pid_t pid = 0;                  // of its daemon
  nlohmann::ordered_json status;  // its daemon's, null if there is none
  std::string why;                // there is none
  bool ended = false;             // its daemon has
};

// head: the first fields, which the bed itself knows: "version" to "algorithm". network:
// as BedNetwork::report() returns it.
nlohmann::ordered_json merged_status(nlohmann::ordered_json head,
                                     const control::ClusterSettings& settings,
                                     const nlohmann::ordered_json& network,
                                     const std::vector<ServerReport>& servers);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_MERGED_STATUS_H_
