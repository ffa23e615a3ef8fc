// The running cluster as a job that measures it sees it: its placement on the servers, the plans
// that it may run, and the trainers that are here.
#ifndef GRADCUBE_CLI_PERF_PERF_CLUSTER_H_
#define GRADCUBE_CLI_PERF_PERF_CLUSTER_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/cluster/running_cluster.h"
#include "cli/measure/harness.h"
#include "cli/measure/perf_row.h"
#include "cli/perf/perf_options.h"
#include "control/plan/base/placement.h"
#include "control/plan/base/plan.h"
#include "control/plan/base/topology.h"
#include "control/plan/collective_kind.h"
#include "control/plan/plan_choice.h"
#include "control/settings/run_directory.h"

namespace gradcube::cli {

struct PerfCluster {
  control::PlanChoice choice;
  std::vector<PerfTrainer> trainers;  // of the servers that are here, by ascending rank
  RunningCluster running;
  std::string algorithm;  // as it is asked of the daemon: with fitted costs

  const control::Placement& placement() const { return choice.placement(); }
  const control::Topology& topology() const { return running.topology; }
  // The one that runs where the usual ones do not and none was asked for; else empty.
  std::string unusual_algorithm() const;
  // The links as a collective of so many bytes on them uses them.
  PerfLinks links(control::CollectiveKind kind, std::uint64_t bytes) const;
  // The same of another plan.
  PerfLinks links(const control::Plan& plan, control::CollectiveKind kind) const;
};

// Asks the daemon, and fills in the settings' members and algorithm. Throws UsageError for what the
// cluster cannot do, and SetupError where daemons are missing, or servers of the job are on other
// hosts and it has no name by which the commands there could join it.
PerfCluster read_perf_cluster(const control::RunDirectory& directory, const JobOptions& options,
                              JobSettings& settings);

// "bcube:3,2, 9 servers, 1000 Mbit/s"; with how many of them, and the trainers on each, where these
// are not all and one.
std::string cluster_text(const PerfCluster& cluster);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_PERF_PERF_CLUSTER_H_
