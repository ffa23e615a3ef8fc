#include "control/plan/base/topology_links.h"

#include <cstdint>
#include <fmt/format.h>

namespace gradcube::control {

TopologyLinks::TopologyLinks(const Topology& topology)
    : topology_(topology),
      first_{std::size_t{topology.space().addresses()} * topology.space().ports() * 2} {
  for (unsigned level = 1; topology.is_tree() && level < topology.link_levels(); ++level) {
    const std::uint32_t uplinks = topology.space().addresses() / topology.sharers(level);
    first_.push_back(first_.back() + 2 * std::size_t{uplinks});
  }
}

unsigned TopologyLinks::level(Number link) const {
  const AddressSpace& space = topology_.space();
  if (!is_uplink(link)) return space.level_of_port(static_cast<unsigned>(link / 2 % space.ports()));
  unsigned level = 1;
  while (link >= first_[level]) ++level;
  return level;
}

std::string TopologyLinks::text(Number link) const {
  const AddressSpace& space = topology_.space();
  if (!is_uplink(link)) {
    const auto server = static_cast<ServerId>(link / 2 / space.ports());
    return fmt::format("{}'s port {}", space.text(server), link / 2 % space.ports());
  }
  const unsigned at = level(link);
  const std::uint32_t sharers = topology_.sharers(at);
  const auto begin = static_cast<ServerId>((link - first_[at - 1]) / 2) * sharers;
  return fmt::format("the uplink of {} to {}", space.text(begin), space.text(begin + sharers - 1));
}

}  // namespace gradcube::control
