#include "bcube_forwarding/joined_ports.h"

#include <utility>

namespace gradcube::bcube {
namespace {

// Those of the switch or cable that the server is the first at; none if it is not.
std::vector<ServerPort> joined_at(const AddressSpace& space, ServerId first, unsigned level) {
  const unsigned own = space.digit(first, level);
  if (space.cabled()) {
    const ServerId far = space.with_digit(first, level, space.next_digit(level, own));
    return {{first, level * space.ports_of_level()}, {far, space.port_of(far, level, own)}};
  }
  std::vector<ServerPort> ports;
  for (unsigned digit = 0; own == 0 && digit < space.radix(level); ++digit) {
    const ServerId server = space.with_digit(first, level, digit);
    ports.push_back({server, level});
    // What else it has on the one switch.
    for (unsigned rail = 1; space.rails() > 1 && rail < space.ports(server); ++rail) {
      ports.push_back({server, rail});
    }
  }
  return ports;
}

}  // namespace

std::vector<std::vector<ServerPort>> joined_ports(const AddressSpace& space) {
  std::vector<std::vector<ServerPort>> all;
  for (unsigned level = 0; level < space.levels(); ++level) {
    for (ServerId server = 0; server < space.addresses(); ++server) {
      std::vector<ServerPort> ports = joined_at(space, server, level);
      if (!ports.empty()) all.push_back(std::move(ports));
    }
  }
  return all;
}

}  // namespace gradcube::bcube
