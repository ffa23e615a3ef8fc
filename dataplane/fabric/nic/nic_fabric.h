// One server's ports on NICs that DPDK drives by itself: what a daemon has on a host whose NICs are
// bound to vfio-pci.
//
// The port with number p is the NIC p of those that were named. Its link address is that which
// bcube_forwarding/neighbours.h gives the server there, whatever the NIC's own MAC is; so nothing
// has to be discovered. A port has one queue: which queue a frame comes to is the NIC's choice, and
// with one there is nothing to agree on.
//
// Frames are copied where they meet the NIC. A NIC reads and writes memory that DPDK has mapped for
// it, and a trainer's is not; and what it receives is kept as long as a trainer is late, while its
// own packets go back to it at once.
//
// Ownership: owns the ports. Pools, clock and pollers outlive it, the pollers until
// discard_packets() or the end.
//
// Threads: as fabric.h says.
//
// Errors: the constructor's are those of pci_nic.h and EthdevPort; they name the NIC.
#ifndef GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_
#define GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/fabric/nic/ethdev_watch.h"
#include "dataplane/host/poller.h"

namespace gradcube::dataplane {

struct NicFabricOptions {
  bcube::ServerId server = 0;
  std::vector<std::string> nics = {};  // by port: their PCI addresses
  std::uint32_t mtu = 1500;
  // Of the ports by number, or without any: not limited.
  std::vector<std::uint64_t> bits_per_second = {};
  std::uint16_t receive_depth = 256;
  std::uint16_t transmit_depth = 256;
  EthdevQueuePools pools = {};
};

class NicFabric final : public Fabric {
 public:
  NicFabric(const NicFabricOptions& options, Clock& clock);
  ~NicFabric() override;

  // Before the poller runs: lets it wake for the ports.
  void connect(Poller& poller);

  std::vector<Port*> ports(bcube::ServerId server) override;
  void discard_packets() override;

  const EthdevPort& port(unsigned number) const { return *ports_.at(number); }

 private:
  bcube::ServerId server_;
  std::vector<std::unique_ptr<EthdevPort>> ports_;
  std::unique_ptr<EthdevWatch> watch_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_FABRIC_NIC_NIC_FABRIC_H_
