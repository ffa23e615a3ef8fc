// One server's ports on devices that DPDK drives, and that have packets of their own: NICs
// (pci_nic.h), and what its drivers make without hardware (virtual_device.h).
//
// The port with number p is on the device p of those that were named. It receives for the link
// address of the port, whatever the device's own MAC is. The ports have a queue for each engine of
// the server. Which queue a frame comes to is the device's choice in the end (ethdev_port.h), so
// the steering of these fabrics is uncertain.
//
// Frames are copied where they meet the device. A NIC reads and writes memory that DPDK has mapped
// for it, and a trainer's is not; some devices take no frame that lies in several packets. And what
// a device receives is kept as long as a trainer is late, while its own packets go back at once.
// The fabric owns the devices' packets.
//
// Errors: those of EthdevPort's constructor, and a SetupError for a device that can neither have
// another MAC address nor receive for all.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_

#include <cstdint>
#include <memory>
#include <string>

#include "dataplane/fabric/port_driver.h"
#include "dataplane/fabric/server_fabric.h"

namespace gradcube::dataplane {

struct NamedDevice {
  std::uint16_t number;  // DPDK's
  std::string name;      // for messages
};

// find() says which device a name of the request means; it may make one that the fabric keeps.
std::unique_ptr<ServerFabric> make_device_fabric(const PortsRequest& request, Clock& clock,
                                                 NamedDevice (*find)(const std::string& name,
                                                                     ServerFabric& fabric));

// Of memory for the packets of `queues` queues of each port.
unsigned device_megabytes(const control::ClusterSettings& settings, unsigned queues);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_DEVICE_FABRIC_H_
