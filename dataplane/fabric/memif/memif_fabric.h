// One server's ports on memif links to emulated switches in other processes (memif_switches.h):
// what a daemon has that runs one server without any right of root's.
//
// Port p is memif number server x ports + p, at the socket of the process that has the switch or
// the cable there, if it has one queue; with more, memif_number() says it. A link comes back by
// itself when that process has ended and a new one listens (memif_reconnection.h).
//
// The fabric owns the devices, too.
//
// Errors: those of MemifDevice and EthdevPort; where nobody listens, they say what is missing.
#ifndef GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_

#include <cstdint>

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

// Of the port at a server's port number, in a cluster whose servers have so many ports, each with
// so many queues. The driver takes it for granted that both ends have as many, so ends that do not
// must not find each other.
constexpr std::uint32_t memif_number(bcube::ServerId server, unsigned port, unsigned ports,
                                     unsigned queues) {
  constexpr unsigned kBitsBelowQueues = 24;
  return (queues - 1) << kBitsBelowQueues | (server * ports + port);
}

// `gradcubed --switch-dir RUN`: the directory of the cluster whose daemons of switches the ports
// lead to.
extern const PortDriver kMemifDriver;

// Of each ring of a link, at both ends.
std::uint16_t memif_slots(const control::ClusterSettings& settings);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_MEMIF_MEMIF_FABRIC_H_
