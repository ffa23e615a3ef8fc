#include "dataplane/bed/bed_links.h"

namespace gradcube::dataplane {

namespace {

std::string bridge_name(const bcube::AddressSpace& space, bcube::ServerId server, unsigned level) {
  std::string name = "sw";
  const auto digits = space.digits(server);
  for (unsigned i = 0; i < space.levels(); ++i) {
    name += '-';
    name += space.levels() - 1 - i == level ? "x" : std::to_string(digits[i]);
  }
  return name;
}

}  // namespace

std::vector<BedLink> bed_links(const bcube::AddressSpace& space) {
  std::vector<BedLink> links;
  for (bcube::ServerId server = 0; server < space.servers(); ++server) {
    for (unsigned level = 0; level < space.levels(); ++level) {
      const std::string number = std::to_string(level);
      links.push_back({.server = server,
                       .level = level,
                       .switch_name = space.joint_text(server, level),
                       .bridge = bridge_name(space, server, level),
                       .port = "p" + space.suffix(server) + "." + number,
                       .interface = "level" + number});
    }
  }
  return links;
}

}  // namespace gradcube::dataplane
