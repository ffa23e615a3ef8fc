// One server's ports on network interfaces of the kernel. Port p is interface p of those that were
// named; its link address is the port's, whatever the interface's own MAC is.
//
// Errors: those of PacketPort's constructor.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

// `gradcubed --interfaces eth1,eth2`.
extern const PortDriver kInterfaceDriver;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
