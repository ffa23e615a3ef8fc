// One server's ports on network interfaces of the kernel. Port p is interface p of those that were
// named; its link address is the port's, whatever the interface's own MAC is.
//
// Ownership and threads: as server_fabric.h says.
//
// Errors: the constructor's are those of PacketPort's.
#ifndef GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/fabric/kernel/packet_port.h"
#include "dataplane/fabric/port_driver.h"
#include "dataplane/fabric/server_fabric.h"

namespace gradcube::dataplane {

struct InterfaceFabricOptions {
  bcube::ServerId server = 0;
  std::vector<std::string> interfaces = {};  // by port
  std::uint32_t mtu = 0;                     // of every port; 0: the interface's
  // Of the ports by number, or without any: not limited.
  std::vector<std::uint64_t> bits_per_second = {};
  std::uint32_t receive_depth = 1024;  // as PacketPortOptions has them
  std::uint32_t transmit_depth = 256;
  std::vector<PacketPool*> pools = {};  // by queue of every port
};

// `gradcubed --interfaces eth1,eth2`.
extern const PortDriver kInterfaceDriver;

class InterfaceFabric final : public ServerFabric<PacketPort> {
 public:
  InterfaceFabric(const InterfaceFabricOptions& options, Clock& clock);
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_KERNEL_INTERFACE_FABRIC_H_
