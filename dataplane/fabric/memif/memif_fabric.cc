#include "dataplane/fabric/memif/memif_fabric.h"

#include <fmt/format.h>

#include "control/base/errors.h"
#include "control/settings/run_directory.h"
#include "control/settings/switch_parts.h"

namespace gradcube::dataplane {

namespace {

// --- Slots of a memif's rings. A ring goes through all of its memory again and again, so it should
// stay in the caches. With a rate the server paces, and the switch takes what its wire does; the
// ring bridges the time until the other process gets its core. Without a rate that is more.
constexpr std::uint16_t kLimitedSlots = 64;
constexpr std::uint16_t kUnlimitedSlots = 128;

void adapt_to_memif(control::ClusterSettings& settings) {
  settings.fabric = control::FabricKind::memif;
  control::validate(settings);
}

std::size_t lcores_of_server(const control::ClusterSettings& settings) {
  return settings.server_lcores;
}

std::unique_ptr<ServerPorts> make_memif(const PortsRequest& request, Clock& clock) {
  const control::ClusterSettings& settings = request.settings;
  if (settings.lcores.size() != settings.server_lcores) {
    throw control::UsageError(fmt::format(
        "lcores: there are {}, and server-lcores is {}: expected as many, as the memif links have "
        "that many queues at the switches",
        settings.lcores.size(), settings.server_lcores));
  }
  const control::RunDirectory cluster(request.names.front());
  const bcube::AddressSpace& space = settings.topology.space();
  const control::SwitchParts parts(space, control::kMaxSwitchProcessPorts);
  MemifFabricOptions options;
  options.server = request.server;
  options.mtu = settings.mtu;
  options.slots = memif_slots(settings);
  options.bits_per_second = port_rates(settings);
  for (unsigned port = 0; port < space.ports(); ++port) {
    options.sockets.push_back(cluster.of_switches(parts.of(request.server, port)).memif_socket());
  }
  for (PacketPool* pool : request.received) {
    options.pools.push_back({.received = pool, .device = nullptr, .sent = nullptr});
  }
  return std::make_unique<MemifFabric>(options, clock);
}

}  // namespace

const PortDriver kMemifDriver{
    .name = "memif",
    .option = "--switch-dir",
    .help =
        "the server's ports lead to emulated switches: the run directory of the cluster; "
        "switches-0/, switches-1/, ... in it are those of the daemons of switches",
    .names = PortDriver::Names::together,
    .impair_advice =
        "the links of this server are emulated in another daemon: that of its "
        "switches impairs them",
    .adapt = adapt_to_memif,
    .useful_lcores = lcores_of_server,
    .make = make_memif};

std::uint16_t memif_slots(const control::ClusterSettings& settings) {
  return settings.rates.limited() ? kLimitedSlots : kUnlimitedSlots;
}

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
