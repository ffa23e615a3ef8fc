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

// Of a whole cluster: jobs on some of the servers have their own grids.
inline control::Plan default_plan(const control::Topology& whole) {
  return control::make_plan(control::default_algorithm(whole), whole, "--topology");
}

// By the threads of that plan.
inline control::Assignment engine_assignment(const control::Topology& whole,
                                             const std::vector<control::Lcore>& lcores) {
  return control::Assignment::all_servers(default_plan(whole), lcores);
}

// Of a server, at least: one for each port, and those of that plan, which is cut for its lcores.
inline unsigned threads_of_server(const control::ClusterSettings& settings) {
  const control::Topology whole = settings.rated_topology().whole();
  return std::max(settings.topology.ports(), default_plan(whole).threads());
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_
