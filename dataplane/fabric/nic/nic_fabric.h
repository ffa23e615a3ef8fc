// One server's ports on NICs that DPDK drives: what a daemon has on a host whose NICs are bound to
// vfio-pci.
//
// The port with number p is the NIC p of those that were named. It receives for the link address of
// the port, whatever the NIC's own MAC is.
//
// Frames are copied where they meet the NIC. A NIC reads and writes memory that DPDK has mapped for
// it, and a trainer's is not; and what it receives is kept as long as a trainer is late, while its
// own packets go back to it at once.
//
// Ownership and threads: as server_fabric.h says.
//
// Errors: the constructor's are those of pci_nic.h and EthdevPort; they name the NIC.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_

#include <cstdint>
#include <string>
#include <vector>

#include "dataplane/fabric/nic/ethdev_fabric.h"

namespace gradcube::dataplane {

struct NicFabricOptions {
  bcube::ServerId server = 0;
  std::vector<std::string> nics = {};  // by port: their PCI addresses
  std::uint32_t mtu = 1500;
  // Of the ports by number, or without any: not limited.
  std::vector<std::uint64_t> bits_per_second = {};
  std::uint16_t descriptors = 256;           // of each of a NIC's two rings, of each queue
  std::vector<EthdevQueuePools> pools = {};  // by queue
};

class NicFabric final : public EthdevFabric {
 public:
  NicFabric(const NicFabricOptions& options, Clock& clock);
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_
