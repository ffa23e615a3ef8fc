// The kinds of ports that a server alone in its process can have: the table of fabrics whose other
// ends are in other processes. Another one is a line here (CONTRIBUTING.md).
#ifndef GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_
#define GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_

#include "dataplane/fabric/kernel/interface_fabric.h"
#include "dataplane/fabric/memif/memif_fabric.h"
#include "dataplane/fabric/nic/pci_nic.h"
#include "dataplane/fabric/nic/virtual_device.h"
#include "dataplane/fabric/udp/udp_fabric.h"

namespace gradcube::dataplane {

inline constexpr const PortDriver* kPortDrivers[] = {&kInterfaceDriver, &kNicDriver,
                                                     &kVirtualDriver, &kMemifDriver, &kUdpDriver};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PORT_DRIVERS_H_
