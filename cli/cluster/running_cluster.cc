#include "cli/cluster/running_cluster.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sstream>

#include "cli/cluster/comes_true.h"
#include "cli/cluster/control_client.h"
#include "cli/text/json_fields.h"
#include "control/base/errors.h"
#include "control/settings/cluster_settings.h"

namespace gradcube::cli {

using nlohmann::json;

namespace {

constexpr std::chrono::seconds kUntilAnEndIsSeen{1};
constexpr std::chrono::milliseconds kBetweenLooks{50};

control::Topology topology_of(const json& topology) {
  constexpr std::string_view kWhere = "the daemon's topology";
  return control::parse_absent(
      control::parse_topology(text_field(topology, "spec").value_or(""), kWhere),
      absent_text(topology), kWhere);
}

control::Aggregators aggregators_of(const control::Topology& topology, const json& addresses) {
  return control::parse_aggregators(topology, addresses_text(addresses),
                                    "the daemon's aggregators");
}

// "ports 0 and 1 of server [0,0] share the address 10.0.0.1"; empty where each has its own.
std::string shared_address_of(const json& server) {
  std::map<std::string, std::string> ports;  // by address
  for (const json& port : items(server, "ports")) {
    if (!text_field(port, "at").has_value()) continue;
    const std::string at = cell_text(port, "at");
    const auto [other, is_new] = ports.try_emplace(at, id_text(port, "port"));
    if (is_new) continue;
    return fmt::format("ports {} and {} of server {} share the address {}", other->second,
                       id_text(port, "port"), address_text(field(server, "address")), at);
  }
  return "";
}

}  // namespace

RunningCluster read_running_cluster(const json& status) {
  const json rate_bps = field(status, "rate_bps");
  const char* const where = "the daemon's status:";
  const json own_ports = field(status, "own_ports");
  const auto rates = control::link_rates_from_json(rate_bps, where)
                         .with_own_ports(control::own_ports_from_json(own_ports, where));
  const auto lcores = static_cast<unsigned>(std::min<std::uint64_t>(
      count_field(status, "server_lcores").value_or(1), control::kMostServerLcores));
  const std::uint64_t mtu = count_field(status, "mtu").value_or(control::kMaxMtu);
  const control::Topology topology =
      topology_of(field(status, "topology"))
          .with_lcores(lcores)
          .with_mtu(static_cast<unsigned>(std::min<std::uint64_t>(mtu, control::kMaxMtu)));
  RunningCluster cluster{.topology = rates.on(topology),
                         .aggregators = aggregators_of(topology, items(status, "aggregators")),
                         .rates = rates,
                         .rate_bps = rate_bps,
                         .unauthenticated = text_field(status, "authentication") == "none",
                         .servers_per_core = 1};
  for (const json& server : items(status, "servers")) {
    const auto id = control::parse_server(cluster.topology, address_text(field(server, "address")),
                                          "the daemon's list of servers");
    cluster.sockets[id] = text_field(server, "socket").value_or("");
    if (flag_field(server, "ended").value_or(false)) cluster.ended[id] = cell_text(server, "why");
    if (cluster.shared_address.empty()) cluster.shared_address = shared_address_of(server);
  }
  for (const json& daemon : items(status, "switch_daemons")) {
    if (!flag_field(daemon, "ended").value_or(false)) continue;
    cluster.ended_switches.push_back(cell_text(daemon, "why"));
  }
  const std::size_t cores = std::max<std::size_t>(1, items(status, "lcores").size());
  cluster.servers_per_core =
      static_cast<unsigned>(std::max<std::size_t>(1, (cluster.sockets.size() + cores - 1) / cores));
  return cluster;
}

std::vector<control::ServerId> members_of(const control::Topology& topology,
                                          const std::string& text) {
  std::vector<control::ServerId> members;
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    members.push_back(control::parse_server(topology, word, "--members"));
  }
  if (members.empty() && !text.empty()) {
    throw control::UsageError(
        "--members: no server is named; expected addresses such as \"0,0 0,1 0,2\"");
  }
  return members;
}

control::Placement placement_of(const RunningCluster& cluster,
                                const std::vector<control::ServerId>& members,
                                std::string_view where) {
  if (members.empty()) {
    return control::place_on_trainers_servers(cluster.topology, cluster.aggregators);
  }
  control::require_trainers_servers(cluster.topology, cluster.aggregators, members, where);
  return control::Placement::of(cluster.topology, members, where);
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

std::string ended_daemons(const RunningCluster& cluster, const control::Placement& placement) {
  std::vector<std::string> all;
  for (const auto& [server, why] : cluster.ended) {
    if (!placement.rank(server)) continue;
    all.push_back(fmt::format("server {}: {}", cluster.topology.space().text(server), why));
  }
  for (const std::string& why : cluster.ended_switches) all.push_back("switches: " + why);
  if (all.empty()) return "";
  return fmt::format("{}; `gradcube down`, then `gradcube up`, puts the cluster in order",
                     fmt::join(all, "; "));
}

void require_daemons(const RunningCluster& cluster, const control::Placement& placement) {
  const std::string ended = ended_daemons(cluster, placement);
  if (!ended.empty()) throw control::SetupError(ended);
}

std::string ended_meanwhile(const Error& error, const control::RunDirectory& directory,
                            const control::Placement& placement) {
  const bool gone = error.code() == GRADCUBE_ENODAEMON;
  std::string ended;
  try {
    comes_true(gone ? kUntilAnEndIsSeen : std::chrono::seconds(0), kBetweenLooks, [&] {
      ended = ended_daemons(running_cluster(directory), placement);
      return !ended.empty();
    });
  } catch (const std::exception&) {  // the error that just came says enough
  }
  return ended.empty() ? "" : "; " + ended;
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
