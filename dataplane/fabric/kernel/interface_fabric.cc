#include "dataplane/fabric/kernel/interface_fabric.h"

#include "bcube_forwarding/neighbours.h"

namespace gradcube::dataplane {

InterfaceFabric::InterfaceFabric(const InterfaceFabricOptions& options, Clock& clock)
    : ServerFabric(options.server) {
  for (unsigned number = 0; number < options.interfaces.size(); ++number) {
    PacketPortOptions port;
    port.interface = options.interfaces[number];
    port.mac = bcube::embedded_link_address(number, server()).mac;
    port.mtu = options.mtu;
    port.pools = options.pools;
    port.receive_depth = options.receive_depth;
    port.transmit_depth = options.transmit_depth;
    if (!options.bits_per_second.empty()) port.bits_per_second = options.bits_per_second.at(number);
    add_port(port, clock);
  }
}

}  // namespace gradcube::dataplane
