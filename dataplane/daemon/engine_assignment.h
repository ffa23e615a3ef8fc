// Which lcore runs which engine of a cluster's servers.
//
// Pure function; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_
#define GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_

#include <vector>

#include "control/plan/algorithms.h"
#include "control/plan/assignment.h"

namespace gradcube::dataplane {

// By the threads of a whole cluster's plan: jobs on some of the servers have their own grids.
inline control::Assignment engine_assignment(const control::Topology& whole,
                                             const std::vector<control::Lcore>& lcores) {
  return control::Assignment::all_servers(
      control::make_plan(control::default_algorithm(whole), whole, "--topology"), lcores);
}

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_ENGINE_ASSIGNMENT_H_
