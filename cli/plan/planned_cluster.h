// What `gradcube plan` is for, in all of its forms: the topology that its options name; without
// one the cluster that runs; and where none runs, bcube:3,2.
#ifndef GRADCUBE_CLI_PLAN_PLANNED_CLUSTER_H_
#define GRADCUBE_CLI_PLAN_PLANNED_CLUSTER_H_

#include <optional>
#include <string>

#include "cli/cluster/running_cluster.h"
#include "cli/cluster/settings_options.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/topology.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

// The topology that the options describe, where no cluster needs to run: bcube:3,2 where they name
// none. Throws a UsageError.
control::Topology asked_topology(const SettingsOptions& options);

struct PlannedCluster {
  control::Topology topology;               // with its rates
  control::Placement placement;             // of a job on all servers that take trainers
  std::optional<RunningCluster> running{};  // where it is the one that runs
  std::string which;                        // ", the running cluster"; empty where it was named
};

// Throws a UsageError, and a SetupError where the running cluster cannot be asked.
PlannedCluster planned_cluster(const control::RunDirectory& directory,
                               const SettingsOptions& options);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PLAN_PLANNED_CLUSTER_H_
