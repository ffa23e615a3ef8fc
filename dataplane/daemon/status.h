// What `gradcube status` shows, gathered from a running cluster as JSON.
//
// Counters are read on the pollers' own threads (Poller::call), so the data path pays nothing for
// being watched. The control thread's. Field names are a contract with tools:
// cli/status_text.h renders them.
#ifndef GRADCUBE_DATAPLANE_DAEMON_STATUS_H_
#define GRADCUBE_DATAPLANE_DAEMON_STATUS_H_

#include <nlohmann/json.hpp>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/daemon/embedded_cluster.h"
#include "dataplane/daemon/job_coordinator.h"
#include "dataplane/host/eal.h"

namespace gradcube::dataplane {

struct StatusSources {
  const control::ClusterSettings& settings;
  const control::RunDirectory& directory;
  const Eal& eal;
  EmbeddedCluster& cluster;
  const JobCoordinator& jobs;
  double uptime_seconds;
};

nlohmann::ordered_json status_json(const StatusSources& sources);
nlohmann::ordered_json impairments_json(const Impairments& impairments, std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif
