// Which lcore runs which engine of a cluster's servers.
//
// Pure function; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_

#include <algorithm>
#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/assignment.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::dataplane {

// By the threads of a whole cluster's plan: jobs on some of the servers have their own grids.
inline control::Assignment engine_assignment(const control::Topology& whole,
                                             const std::vector<control::Lcore>& lcores) {
  return control::Assignment::all_servers(
      control::make_plan(control::default_algorithm(whole), whole, "--topology"), lcores);
}

// Of a server, at least: one for each port, and those of a plan that is cut for its lcores.
inline unsigned threads_of_server(const control::ClusterSettings& settings) {
  const unsigned ports = settings.topology.ports();
  if (settings.server_lcores == 1) return ports;
  const control::Topology whole = settings.rated_topology().whole();
  const auto algorithm = control::default_algorithm(whole);
  return std::max(ports, control::make_plan(algorithm, whole, "--topology").threads());
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_
