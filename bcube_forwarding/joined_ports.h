// Which ports of which servers a switch joins, or on a torus a cable: for who makes the switches.
//
// Pure functions, which allocate: for set-up.
#ifndef GRADCUBE_BCUBE_FORWARDING_JOINED_PORTS_H_
#define GRADCUBE_BCUBE_FORWARDING_JOINED_PORTS_H_

#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::bcube {

struct ServerPort {
  ServerId server = 0;
  unsigned port = 0;

  bool operator==(const ServerPort&) const = default;
};

// For each switch or cable its ports: level by level, in the order of their first servers. Those of
// a switch are by ascending digit; of a cable, the one at the even port comes first. Those of
// absent servers are among them, so that the others have their places whoever is absent.
std::vector<std::vector<ServerPort>> joined_ports(const AddressSpace& space);

}  // namespace gradcube::bcube

#endif  // GRADCUBE_BCUBE_FORWARDING_JOINED_PORTS_H_
