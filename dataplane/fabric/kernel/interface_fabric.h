// One server's ports on network interfaces of the kernel. Port p is interface p of those that were
// named; its link address is the port's, whatever the interface's own MAC is.
//
// Ownership and threads: as server_fabric.h says.
//
// Errors: the constructor's are those of PacketPort's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_

#include "dataplane/fabric/kernel/packet_port.h"
#include "dataplane/fabric/port_driver.h"
#include "dataplane/fabric/server_fabric.h"

namespace gradcube::dataplane {

// `gradcubed --interfaces eth1,eth2`.
extern const PortDriver kInterfaceDriver;

class InterfaceFabric final : public ServerFabric<PacketPort> {
 public:
  InterfaceFabric(const PortsRequest& request, Clock& clock);
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
