// One server's ports on sockets, at the addresses that the cluster's `hosts` give its server. Who
// its neighbours are and where they listen follows from the same list, so nothing has to be
// discovered.
//
// Errors: those of UdpPort's constructor, with the port's number and its server.
#ifndef GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_FABRIC_H_

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

// Of a server whose cluster has fabric = "udp".
extern const PortDriver kUdpDriver;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_UDP_UDP_FABRIC_H_
