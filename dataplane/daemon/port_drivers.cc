#include "dataplane/daemon/port_drivers.h"

#include "dataplane/fabric/kernel/interface_fabric.h"
#include "dataplane/fabric/memif/memif_fabric.h"
#include "dataplane/fabric/nic/pci_nic.h"
#include "dataplane/fabric/nic/virtual_device.h"
#include "dataplane/fabric/udp/udp_fabric.h"

namespace gradcube::dataplane {

namespace {

constexpr const PortDriver* kDrivers[] = {&kInterfaceDriver, &kNicDriver, &kVirtualDriver,
                                          &kMemifDriver, &kUdpDriver};

}  // namespace

std::span<const PortDriver* const> port_drivers() { return kDrivers; }

}  // namespace gradcube::dataplane
