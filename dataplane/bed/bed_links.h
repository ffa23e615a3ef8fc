// The links of a test bed, and what their ends and their switches are called.
//
// A link joins an interface in the network namespace of a server with a port in the namespace of
// the bed, and the port belongs to the bridge that is the switch. The interface of level 1 is
// "level1". The port to it from server [2,1] is "p2-1.1", and its bridge "sw-x-1": the digits that
// the switch's servers share, with an x for the others. On a torus a bridge with two ports is a
// cable: the interface of port 3 is "port3", and the bridge "c2-1.0" is the cable of level 0 from
// [2,1] to the server that follows. An interface's name has at most 15 characters, which suffice
// for kMaxBedServers.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
#define GRADCUBE_DATAPLANE_BED_BED_LINKS_H_

#include <string>
#include <vector>

#include "bcube_forwarding/address.h"
#include "dataplane/bed/link_request.h"

namespace gradcube::dataplane {

struct BedLink : NamedLink {
  std::string bridge;     // "sw-x-1"
  std::string port;       // "p2-1.1"
  std::string interface;  // "level1"
};

// As requests name them.
std::vector<NamedLink> names_of(const std::vector<BedLink>& links);

// By server, then by its ports.
std::vector<BedLink> bed_links(const bcube::AddressSpace& space);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
