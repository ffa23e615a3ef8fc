// What `gradcube status` shows, gathered from a running cluster as JSON.
//
// Each poller copies the counters and some flows of its engines between two iterations
// (Poller::call). More than kMostFlows are not in the status, which would take long to write: the
// command "flows" has the first of them, or those of the jobs that it names. Other programs rely on
// the names of the fields, and other daemons on what control/status/form.h has of them: of the rest
// they take plain values alone. cli/status/status_text.h shows them to people, and docs/counters.md
// says what each counter means. The control thread's.
#ifndef GRADCUBE_DATAPLANE_DAEMON_STATUS_H_
#define GRADCUBE_DATAPLANE_DAEMON_STATUS_H_

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "control/settings/run_directory.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/host/eal.h"
#include "dataplane/sockets/control_loop.h"

namespace gradcube::dataplane {

struct StatusSources {
  const control::ClusterSettings& settings;
  const control::RunDirectory& sockets;  // where the trainers' are
  const Eal& eal;
  LocalCluster& cluster;
  const MemoryQuota& quota;
  std::size_t trainers_per_user;  // may be connected at a time
  const ControlLoop::Steps& steps;
  control::Instant now;  // of the nodes
  double uptime_seconds;
  nlohmann::ordered_json keys;  // KeyChange::report()
};

// In one answer.
inline constexpr std::size_t kMostFlows = 1000;

nlohmann::ordered_json status_json(const StatusSources& sources);

// Of these jobs, or of all if none is named: "flow_count"; and "flows", as in the status, the first
// kMostFlows.
nlohmann::ordered_json flows_json(const LocalCluster& cluster,
                                  const std::vector<std::string>& jobs);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_STATUS_H_
