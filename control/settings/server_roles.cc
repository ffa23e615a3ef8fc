#include "control/settings/server_roles.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::control {

Aggregators parse_aggregators(const Topology& topology, std::string_view text,
                              std::string_view where) {
  Aggregators aggregators = parse_servers(topology, text, where);
  std::sort(aggregators.begin(), aggregators.end());
  aggregators.erase(std::unique(aggregators.begin(), aggregators.end()), aggregators.end());
  return aggregators;
}

std::string aggregators_text(const Topology& topology, const Aggregators& aggregators) {
  return addresses_text(topology.space(), aggregators);
}

void validate_aggregators(const Topology& topology, const Aggregators& aggregators) {
  for (const ServerId server : aggregators) {
    if (topology.space().contains(server)) continue;
    throw UsageError(fmt::format("aggregators: server {} is absent or no address (topology {})",
                                 topology.space().text(server), topology.spec()));
  }
  if (!aggregators.empty() && aggregators.size() >= topology.servers()) {
    throw UsageError(fmt::format(
        "aggregators: all {} servers are named; expected one that takes trainers, at least",
        topology.servers()));
  }
}

bool is_aggregator(const Aggregators& aggregators, ServerId server) {
  return std::binary_search(aggregators.begin(), aggregators.end(), server);
}

std::vector<ServerId> trainers_servers(const Topology& topology, const Aggregators& aggregators) {
  std::vector<ServerId> servers = topology.space().server_list();
  std::erase_if(servers, [&](ServerId server) { return is_aggregator(aggregators, server); });
  return servers;
}

// All servers of a whole topology are placed without a list of them.
Placement place_on_trainers_servers(const Topology& topology, const Aggregators& aggregators) {
  if (aggregators.empty()) return Placement::all(topology);
  return Placement::of(topology, trainers_servers(topology, aggregators), "aggregators");
}

void require_trainers_servers(const Topology& topology, const Aggregators& aggregators,
                              const std::vector<ServerId>& members, std::string_view where) {
  for (const ServerId server : members) {
    if (!is_aggregator(aggregators, server)) continue;
    throw UsageError(fmt::format("{}: server {} is an aggregator, which takes no trainers", where,
                                 topology.space().text(server)));
  }
}

}  // namespace gradcube::control
