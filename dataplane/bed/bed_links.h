// The links of a test bed, and what their ends and their switches are called.
//
// A link joins an interface in the network namespace of a server with a port in the namespace of
// the bed, and the port belongs to the bridge that is the switch. The interface of level 1 is
// "level1". The port to it from server [2,1] is "p2-1.1", and its bridge "sw-x-1": the digits that
// the switch's servers share, with an x for the others. An interface's name has at most 15
// characters, which suffice for kMaxBedServers.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
#define GRADCUBE_DATAPLANE_BED_BED_LINKS_H_

#include <string>
#include <vector>

#include "bcube_forwarding/address.h"

namespace gradcube::dataplane {

struct BedLink {
  bcube::ServerId server = 0;
  unsigned level = 0;
  std::string switch_name;  // "1/[*,1]", as people know it
  std::string bridge;       // "sw-x-1"
  std::string port;         // "p2-1.1"
  std::string interface;    // "level1"
};

// By server, then by level.
std::vector<BedLink> bed_links(const bcube::AddressSpace& space);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
