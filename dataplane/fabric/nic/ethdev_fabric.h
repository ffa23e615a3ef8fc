// One server's ports on Ethernet devices of DPDK's: what a daemon has that runs one server and
// drives its devices by itself.
//
// The ports have a queue for each engine of the server. Which queue a frame comes to is the
// device's choice in the end (ethdev_port.h), so the steering of these fabrics is uncertain.
//
// Ownership and threads: as server_fabric.h says.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_

#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/fabric/server_fabric.h"

namespace gradcube::dataplane {

using EthdevFabric = ServerFabric<EthdevPort>;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_ETHDEV_FABRIC_H_
