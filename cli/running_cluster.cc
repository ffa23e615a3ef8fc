#include "cli/running_cluster.h"

#include <nlohmann/json.hpp>

#include "cli/json_fields.h"
#include "cli/status_text.h"

namespace gradcube::cli {

using nlohmann::json;

RunningCluster read_running_cluster(const json& status) {
  const auto rates =
      control::link_rates_from_json(field(status, "rate_bps"), "the daemon's status:");
  RunningCluster cluster{.topology = rates.on(control::parse_topology(
                             topology_text(field(status, "topology")), "the daemon's topology")),
                         .rates = rates,
                         .sockets = {}};
  for (const json& server : items(status, "servers")) {
    const auto id = control::parse_server(cluster.topology, address_text(field(server, "address")),
                                          "the daemon's list of servers");
    cluster.sockets[id] = text_field(server, "socket").value_or("");
  }
  return cluster;
}

}  // namespace gradcube::cli
