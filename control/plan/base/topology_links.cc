#include "control/plan/base/topology_links.h"

#include <fmt/format.h>

namespace gradcube::control {

TopologyLinks::TopologyLinks(const Topology& topology)
    : space_(topology.space()), first_{std::size_t{space_.addresses()} * space_.ports() * 2} {
  for (unsigned level = 1; topology.is_tree() && level < topology.link_levels(); ++level) {
    sharers_.push_back(topology.sharers(level));
    first_.push_back(first_.back() + std::size_t{space_.addresses()} / sharers_.back() * 2);
  }
}

unsigned TopologyLinks::level(Number link) const {
  if (!is_uplink(link)) return space_.level_of_port(static_cast<unsigned>(link / 2 % space_.ports()));
  unsigned level = 1;
  while (link >= first_[level]) ++level;
  return level;
}

std::string TopologyLinks::text(Number link) const {
  if (!is_uplink(link)) {
    const auto server = static_cast<ServerId>(link / 2 / space_.ports());
    return fmt::format("{}'s port {}", space_.text(server), link / 2 % space_.ports());
  }
  const unsigned at = level(link);
  const auto begin =
      static_cast<ServerId>((link - first_[at - 1]) / 2 * std::size_t{sharers_[at - 1]});
  return fmt::format("the uplink of {} to {}", space_.text(begin),
                     space_.text(begin + sharers_[at - 1] - 1));
}

}  // namespace gradcube::control
