// The links of a test bed, and what their ends and their switches are called.
//
// A link joins an interface in the network namespace of a server with a port in the namespace of
// the bed, and the port belongs to the bridge that is the switch. The interface of level 1 is
// "level1". The port to it from server [2,1] is "p2-1.1", and its bridge "sw-x-1": the digits that
// the switch's servers share, with an x for the others. On a torus a bridge with two ports is a
// cable: the interface of port 3 is "port3", and the bridge "c2-1.0" is the cable of level 0 from
// [2,1] to the server that follows. On a tree the bridge "t0.3" is switch 3 of level 0, and the
// link from it to a bridge of level 1 has the ports "u1.3" here and "d1.3" there. An interface's
// name has at most 15 characters, which suffice for kMaxBedServers.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
#define GRADCUBE_DATAPLANE_BED_BED_LINKS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/base/topology.h"
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
std::vector<BedLink> bed_links(const control::Topology& topology);

// Of a tree: a link between two bridges, which the servers below the one share.
struct BedUplink {
  unsigned level = 0;  // of links
  std::uint32_t sharers = 0;
  std::string below;  // the bridges: "t0.3"
  std::string above;  // "t1.0"
  std::string up;     // the port of the one below: "u1.3"
  std::string down;   // and of the one above: "d1.3"
};

// By level. None unless the topology is a tree.
std::vector<BedUplink> bed_uplinks(const control::Topology& topology);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_BED_LINKS_H_
