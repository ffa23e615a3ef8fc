#include "cli/plan/planned_cluster.h"

#include <fmt/format.h>
#include <utility>

#include "cli/cluster/control_client.h"
#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::cli {
namespace {

constexpr const char* kTopology = "bcube:3,2";

}  // namespace

control::Topology asked_topology(const TopologyOptions& options) {
  control::ClusterSettings settings;
  for (const auto& [name, text] :
       {std::pair("topology", options.topology), std::pair("absent", options.absent),
        std::pair("rate", options.rate), std::pair("oversubscription", options.oversubscription)}) {
    if (!text.empty()) control::apply_setting(settings, name, text, std::string("--") + name);
  }
  settings.link_rates().validate(settings.topology);
  return settings.rated_topology();
}

PlannedCluster planned_cluster(const control::RunDirectory& directory,
                               const TopologyOptions& options) {
  const bool is_named = !options.topology.empty();
  if (is_named || !runs_here(directory)) {
    TopologyOptions asked = options;
    if (!is_named) asked.topology = kTopology;
    const auto topology = asked_topology(asked);
    return {.topology = topology,
            .placement = control::Placement::all(topology),
            .running = {},
            .which = is_named ? "" : ", as no cluster is running"};
  }
  for (const auto& [flag, text] :
       {std::pair("--rate", options.rate), std::pair("--absent", options.absent),
        std::pair("--oversubscription", options.oversubscription)}) {
    if (text.empty()) continue;
    throw control::UsageError(
        fmt::format("{}: the running cluster has its own; expected a --topology beside it", flag));
  }
  const RunningCluster cluster = running_cluster(directory);
  const char* const without = cluster.aggregators.empty() ? "" : " without its aggregators";
  return {.topology = cluster.topology,
          .placement = placement_of(cluster, {}, "--topology"),
          .running = cluster,
          .which = fmt::format(", the running cluster{}", without)};
}

}  // namespace gradcube::cli
