#include "cli/running_cluster.h"

#include <fmt/format.h>

#include "cli/control_client.h"
#include "cli/json_fields.h"
#include "cli/status_text.h"

namespace gradcube::cli {

using nlohmann::json;

RunningCluster read_running_cluster(const json& status) {
  const json rate_bps = field(status, "rate_bps");
  const auto rates = control::link_rates_from_json(rate_bps, "the daemon's status:");
  RunningCluster cluster{.topology = rates.on(control::parse_topology(
                             topology_text(field(status, "topology")), "the daemon's topology")),
                         .rates = rates,
                         .rate_bps = rate_bps,
                         .sockets = {},
                         .key = json::array({field(status, "pid"), field(status, "topology"),
                                             rate_bps, field(status, "mtu")})
                                    .dump(-1, ' ', false, json::error_handler_t::replace)};
  for (const json& server : items(status, "servers")) {
    const auto id = control::parse_server(cluster.topology, address_text(field(server, "address")),
                                          "the daemon's list of servers");
    cluster.sockets[id] = text_field(server, "socket").value_or("");
  }
  return cluster;
}

RunningCluster running_cluster(const control::RunDirectory& directory) {
  return read_running_cluster(ask_status(directory));
}

std::vector<PerfTrainer> trainers_of(const RunningCluster& cluster,
                                     const control::Placement& placement) {
  std::vector<PerfTrainer> trainers;
  for (control::Rank rank = 0; rank < placement.trainers(); ++rank) {
    const control::TrainerPlace place = placement.place(rank);
    const auto found = cluster.sockets.find(place.server);
    if (found != cluster.sockets.end()) trainers.push_back({rank, place.local, found->second});
  }
  return trainers;
}

std::string rates_text(const RunningCluster& cluster) {
  using nlohmann::json;
  const json& rate_bps = cluster.rate_bps;
  std::string text;
  for (const json& rate : rate_bps.is_array() ? rate_bps : json::array({rate_bps})) {
    if (!rate.is_number()) return "no rate";
    text += fmt::format("{}{:.5g}", text.empty() ? "" : ",", rate.get<double>() / 1e6);
  }
  return text + " Mbit/s";
}

}  // namespace gradcube::cli
