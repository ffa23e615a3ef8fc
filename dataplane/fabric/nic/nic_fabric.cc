#include "dataplane/fabric/nic/nic_fabric.h"

#include <stdexcept>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/fabric/nic/pci_nic.h"

namespace gradcube::dataplane {

NicFabric::NicFabric(const NicFabricOptions& options, Clock& clock) : server_(options.server) {
  for (unsigned number = 0; number < options.nics.size(); ++number) {
    EthdevPortOptions port;
    port.device = device_of_nic(options.nics[number]);
    port.name = "NIC " + options.nics[number];
    port.mtu = options.mtu;
    port.pools = {options.pools};
    port.receive_depth = options.receive_depth;
    port.transmit_depth = options.transmit_depth;
    if (!options.bits_per_second.empty()) port.bits_per_second = options.bits_per_second.at(number);
    set_link_address(port.device, bcube::embedded_link_address(number, server_));
    ports_.push_back(std::make_unique<EthdevPort>(port, clock));
  }
}

NicFabric::~NicFabric() { discard_packets(); }

void NicFabric::connect(Poller& poller) {
  std::vector<const EthdevPort*> ports;
  for (const auto& port : ports_) ports.push_back(port.get());
  watch_ = std::make_unique<EthdevWatch>(std::move(ports), std::uint16_t{0}, poller);
}

std::vector<Port*> NicFabric::ports(bcube::ServerId server) {
  if (server != server_) {
    throw std::invalid_argument("server " + std::to_string(server) +
                                " has no ports in this fabric");
  }
  std::vector<Port*> ports;
  for (const auto& port : ports_) ports.push_back(port.get());
  return ports;
}

void NicFabric::discard_packets() {
  watch_.reset();
  ports_.clear();
}

}  // namespace gradcube::dataplane
