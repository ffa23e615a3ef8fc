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

std::string bridge_name(const bcube::AddressSpace& space, bcube::ServerId server, unsigned port) {
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

std::vector<BedLink> bed_links(const bcube::AddressSpace& space) {
  std::vector<BedLink> links;
  for (const bcube::ServerId server : space.server_list()) {
    for (unsigned port = 0; port < space.ports(); ++port) {
      const std::string number = std::to_string(port);
      links.push_back({{.server = server,
                        .level = space.level_of_port(port),
                        .server_port = port,
                        .switch_name = space.joint_text(server, port)},
                       bridge_name(space, server, port),
                       "p" + space.suffix(server) + "." + number,
                       (space.cabled() ? "port" : "level") + number});
    }
  }
  return links;
}

}  // namespace gradcube::dataplane
