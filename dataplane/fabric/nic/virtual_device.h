// Ports on devices that DPDK's drivers make without hardware: `gradcubed --vdevs`. A port is named
// as DPDK's --vdev has it, by the driver, a number of one's own, and the driver's arguments:
//
//     net_af_xdp0,iface=eth1     an interface of the kernel by AF_XDP, which passes its stack by
//     net_tap0,iface=cube0       an interface that this makes
//
// The drivers are packages called librte-net-...; what each takes and how long its frames may be is
// in DPDK's documentation of it. Most have no receive interrupts: an idle poller looks at them.
//
// The fabric makes the devices, and removes them.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_VIRTUAL_DEVICE_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_VIRTUAL_DEVICE_H_

#include "dataplane/fabric/port_driver.h"

namespace gradcube::dataplane {

// `gradcubed --vdevs net_af_xdp0,iface=eth1 net_af_xdp1,iface=eth2`.
extern const PortDriver kVirtualDriver;

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_VIRTUAL_DEVICE_H_
