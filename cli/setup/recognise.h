// From cables to a topology: which server each host is, and which port of it each of its ports.
//
// A topology is recognised by its squares. Where a server is joined to one other at one level and
// to another at a second level, a BCube and a torus have exactly one more server that is joined to
// both. So from the levels of one server's ports follow those of its neighbours', and so on; the
// digits of a level are what is left joined without its links. What comes of it is compared with
// the topology, cable by cable.
//
// Ports that hear nobody belong to no topology, and are no matter where the others form one.
//
// Pure functions, which allocate; any thread.
#ifndef GRADCUBE_CLI_SETUP_RECOGNISE_H_
#define GRADCUBE_CLI_SETUP_RECOGNISE_H_

#include <cstddef>
#include <string>
#include <vector>

#include "cli/setup/cables.h"
#include "control/plan/base/topology.h"

namespace gradcube::cli {

struct Proposal {
  control::Topology topology;
  std::vector<std::size_t> hosts;               // by server
  std::vector<std::vector<std::size_t>> ports;  // by server, and number of its port
  bool uses_all = true;                         // the cables that there are
};

struct Recognised {
  // What the hosts can be, the best first. A ring of four is a BCube(2,2), too, and of a full mesh
  // a ring takes some of the cables.
  std::vector<Proposal> proposals;
  std::vector<std::string> faults;  // why there is no proposal, cable by cable
};

Recognised recognise(const Cables& cables);

}  // namespace gradcube::cli

#endif  // GRADCUBE_CLI_SETUP_RECOGNISE_H_
