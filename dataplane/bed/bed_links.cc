#include "dataplane/bed/bed_links.h"

namespace gradcube::dataplane {

namespace {

// Of a torus: by the end of the cable whose next digit the other has.
std::string cable_name(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port) {
  const unsigned level = space.level_of_port(port);
  const bool begins = port % space.ports_of_level() == 0;
  const unsigned digit = space.digit(server, level);
  const bcube::ServerId first =
      begins ? server : space.with_digit(server, level, space.previous_digit(level, digit));
  return "c" + space.suffix(first) + "." + std::to_string(level);
}

// Of a tree: of the switch of this level that has the server below it.
std::string tree_switch_name(const control::Topology& topology, bcube::ServerId server,
                             unsigned level) {
  const bool top = level + 1 == topology.link_levels();
  const std::uint32_t number = top ? 0 : server / topology.sharers(level + 1);
  return "t" + std::to_string(level) + "." + std::to_string(number);
}

bool any_server_below(const control::Topology& topology, bcube::ServerId first,
                      std::uint32_t sharers) {
  for (bcube::ServerId server = first; server < first + sharers; ++server) {
    if (!topology.space().is_absent(server)) return true;
  }
  return false;
}

std::string bridge_name(const control::Topology& topology, bcube::ServerId server, unsigned port) {
  const bcube::AddressSpace& space = topology.space();
  if (topology.is_tree()) return tree_switch_name(topology, server, 0);
  if (space.cabled()) return cable_name(space, server, port);
  const unsigned level = space.level_of_port(port);
  std::string name = "sw";
  const auto digits = space.digits(server);
  for (unsigned i = 0; i < space.levels(); ++i) {
    name += '-';
    name += space.levels() - 1 - i == level ? "x" : std::to_string(digits[i]);
  }
  return name;
}

}  // namespace

std::vector<NamedLink> names_of(const std::vector<BedLink>& links) {
  return std::vector<NamedLink>(links.begin(), links.end());
}

std::vector<BedLink> bed_links(const control::Topology& topology) {
  const bcube::AddressSpace& space = topology.space();
  std::vector<BedLink> links;
  for (const bcube::ServerId server : space.server_list()) {
    for (unsigned port = 0; port < space.ports(); ++port) {
      const std::string number = std::to_string(port);
      links.push_back({{.server = server,
                        .level = space.level_of_port(port),
                        .server_port = port,
                        .switch_name = space.joint_text(server, port)},
                       bridge_name(topology, server, port),
                       "p" + space.suffix(server) + "." + number,
                       (space.cabled() ? "port" : "level") + number});
    }
  }
  return links;
}

std::vector<BedUplink> bed_uplinks(const control::Topology& topology) {
  std::vector<BedUplink> uplinks;
  for (unsigned level = 1; topology.is_tree() && level < topology.link_levels(); ++level) {
    const std::uint32_t sharers = topology.sharers(level);
    for (bcube::ServerId first = 0; first < topology.space().addresses(); first += sharers) {
      if (!any_server_below(topology, first, sharers)) continue;
      const std::string name = std::to_string(level) + "." + std::to_string(first / sharers);
      uplinks.push_back({level, sharers, tree_switch_name(topology, first, level - 1),
                         tree_switch_name(topology, first, level), "u" + name, "d" + name});
    }
  }
  return uplinks;
}

}  // namespace gradcube::dataplane
