#include "dataplane/fabric/memif/memif_fabric.h"

#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

MemifFabric::MemifFabric(const MemifFabricOptions& options, Clock& clock)
    : EthdevFabric(options.server) {
  try {
    std::vector<EthdevPort*> ports;
    for (unsigned port = 0; port < options.sockets.size(); ++port) {
      ports.push_back(&add(options, port, clock));
    }
    reconnection_ = std::make_unique<MemifReconnection>(ports);
  } catch (...) {
    MemifFabric::discard_packets();
    throw;
  }
}

void MemifFabric::discard_packets() {
  reconnection_.reset();
  EthdevFabric::discard_packets();
}

EthdevPort& MemifFabric::add(const MemifFabricOptions& options, unsigned port, Clock& clock) {
  const std::filesystem::path& socket = options.sockets[port];
  MemifOptions of_device;
  of_device.socket = sockets_.try_emplace(socket, socket).first->second.path();
  of_device.number = memif_number(server(), port, static_cast<unsigned>(options.sockets.size()),
                                  static_cast<unsigned>(options.pools.size()));
  of_device.role = MemifOptions::Role::connects;
  of_device.mtu = options.mtu;
  of_device.slots = options.slots;
  devices_.push_back(std::make_unique<MemifDevice>(of_device));
  EthdevPortOptions of_port = devices_.back()->port_options();
  of_port.pools = options.pools;
  if (!options.bits_per_second.empty()) of_port.bits_per_second = options.bits_per_second.at(port);
  try {
    return add_port(of_port, clock);
  } catch (const control::SetupError& error) {
    throw control::SetupError(
        fmt::format("port {}: {}; a daemon of the switches has to listen at {}", port, error.what(),
                    socket.string()));
  }
}

}  // namespace gradcube::dataplane
