#include "dataplane/fabric/nic/nic_fabric.h"

#include "bcube_forwarding/neighbours.h"
#include "dataplane/fabric/nic/pci_nic.h"

namespace gradcube::dataplane {

NicFabric::NicFabric(const NicFabricOptions& options, Clock& clock) : EthdevFabric(options.server) {
  for (unsigned number = 0; number < options.nics.size(); ++number) {
    EthdevPortOptions port;
    port.device = device_of_nic(options.nics[number]);
    port.name = "NIC " + options.nics[number];
    port.mtu = options.mtu;
    port.pools = options.pools;
    port.receive_depth = options.descriptors;
    port.transmit_depth = options.descriptors;
    port.receive_interrupts = true;
    if (!options.bits_per_second.empty()) port.bits_per_second = options.bits_per_second.at(number);
    set_link_address(port.device, bcube::embedded_link_address(number, server()));
    add_port(port, clock);
  }
}

}  // namespace gradcube::dataplane
