#include "control/plan/base/topology_links.h"

#include <algorithm>
#include <cstdint>
#include <fmt/format.h>

namespace gradcube::control {

TopologyLinks::TopologyLinks(const Topology& topology)
    : topology_(topology),
      first_{std::size_t{topology.space().addresses()} * topology.space().most_ports() * 2} {
  for (unsigned level = 1; topology.is_tree() && level < topology.link_levels(); ++level) {
    const std::uint32_t uplinks = topology.space().addresses() / topology.sharers(level);
    first_.push_back(first_.back() + 2 * std::size_t{uplinks});
  }
}

unsigned TopologyLinks::level(Number link) const {
  const AddressSpace& space = topology_.space();
  if (!is_uplink(link))
    return space.level_of_port(static_cast<unsigned>(link / 2 % space.most_ports()));
  unsigned level = 1;
  while (link >= first_[level]) ++level;
  return level;
}

double TopologyLinks::slowness(Number link) const {
  if (is_uplink(link)) return 1;
  const auto server = static_cast<ServerId>(link / 2 / topology_.space().most_ports());
  const unsigned at = level(link);
  const auto of_most = static_cast<double>(topology_.dimensions()[at].rate_bps);
  return of_most == 0 ? 1 : of_most / static_cast<double>(topology_.port_bps(server, at));
}

std::string TopologyLinks::text(Number link) const {
  const AddressSpace& space = topology_.space();
  if (!is_uplink(link)) {
    const auto server = static_cast<ServerId>(link / 2 / space.most_ports());
    return fmt::format("{}'s port {}", space.text(server), link / 2 % space.most_ports());
  }
  const unsigned at = level(link);
  const std::uint32_t sharers = topology_.sharers(at);
  const auto begin = static_cast<ServerId>((link - first_[at - 1]) / 2) * sharers;
  return fmt::format("the uplink of {} to {}", space.text(begin), space.text(begin + sharers - 1));
}

std::uint64_t hop_bps(const Topology& topology, ServerId from, ServerId to, unsigned level) {
  const std::uint64_t ports =
      std::min(topology.port_bps(from, level), topology.port_bps(to, level));
  const unsigned link_level = topology.link_level(from, to, level);
  const bool over_uplinks = topology.is_tree() && link_level > 0;
  return over_uplinks ? std::min(ports, topology.path_bps(link_level)) : ports;
}

}  // namespace gradcube::control
