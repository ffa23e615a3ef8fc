#include "cli/plan/planned_cluster.h"

#include <fmt/format.h>

#include "cli/cluster/control_client.h"
#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::cli {

control::Topology asked_topology(const SettingsOptions& options) {
  control::ClusterSettings settings;
  options.apply(settings);
  settings.link_rates().validate(settings.topology);
  return settings.rated_topology();
}

PlannedCluster planned_cluster(const control::RunDirectory& directory,
                               const SettingsOptions& options) {
  const bool is_named = options.given("topology");
  if (is_named || !runs_here(directory)) {
    const auto topology = asked_topology(options);
    return {.topology = topology,
            .placement = control::Placement::all(topology),
            .which = is_named ? "" : ", as no cluster is running"};
  }
  for (const char* name : {"rate", "absent", "oversubscription"}) {
    if (!options.given(name)) continue;
    throw control::UsageError(fmt::format(
        "--{}: the running cluster has its own; expected a --topology beside it", name));
  }
  const RunningCluster cluster = running_cluster(directory);
  const char* const without = cluster.aggregators.empty() ? "" : " without its aggregators";
  return {.topology = cluster.topology,
          .placement = placement_of(cluster, {}, "--topology"),
          .running = cluster,
          .which = fmt::format(", the running cluster{}", without)};
}

}  // namespace gradcube::cli
