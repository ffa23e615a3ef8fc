#include "dataplane/fabric/memif/memif_fabric.h"

#include <filesystem>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "control/base/errors.h"
#include "control/settings/run_directory.h"
#include "control/settings/switch_parts.h"
#include "dataplane/fabric/memif/memif_device.h"
#include "dataplane/fabric/memif/memif_reconnection.h"
#include "dataplane/fabric/memif/memif_socket.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/fabric/server_fabric.h"

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

void check_queues(const control::ClusterSettings& settings) {
  if (settings.lcores.size() == settings.server_lcores) return;
  throw control::UsageError(fmt::format(
      "lcores: there are {}, and server-lcores is {}: expected as many, as the memif links have "
      "that many queues at the switches",
      settings.lcores.size(), settings.server_lcores));
}

// What the ports stand on.
struct MemifLinks {
  std::map<std::filesystem::path, MemifSocket> sockets;
  std::vector<std::unique_ptr<MemifDevice>> devices;  // by port
};

std::unique_ptr<EthdevPort> make_port(MemifLinks& links, const PortsRequest& request, unsigned port,
                                      const std::filesystem::path& socket, Clock& clock) {
  MemifOptions of_device;
  of_device.socket = links.sockets.try_emplace(socket, socket).first->second.path();
  of_device.number = memif_number(request.server, port, request.settings.topology.ports(),
                                  static_cast<unsigned>(request.received.size()));
  of_device.role = MemifOptions::Role::connects;
  of_device.mtu = request.settings.mtu;
  of_device.slots = memif_slots(request.settings);
  links.devices.push_back(std::make_unique<MemifDevice>(of_device));
  EthdevPortOptions of_port = links.devices.back()->port_options();
  for (PacketPool* pool : request.received) {
    of_port.pools.push_back({.received = pool, .device = nullptr, .sent = nullptr});
  }
  of_port.bits_per_second = port_rate(request.settings, request.server, port);
  try {
    return std::make_unique<EthdevPort>(of_port, clock);
  } catch (const control::SetupError& error) {
    throw control::SetupError(
        fmt::format("port {}: {}; a daemon of the switches has to listen at {}", port, error.what(),
                    socket.string()));
  }
}

std::unique_ptr<ServerFabric> make_fabric(const PortsRequest& request, Clock& clock) {
  check_queues(request.settings);
  const bcube::AddressSpace& space = request.settings.topology.space();
  const control::SwitchParts parts(space, control::kMaxSwitchProcessPorts);
  const control::RunDirectory cluster(request.names.front());
  auto fabric = std::make_unique<ServerFabric>(request.server);
  const auto links = std::make_shared<MemifLinks>();
  fabric->keep(links);
  std::vector<EthdevPort*> ports;
  for (unsigned number = 0; number < space.ports(); ++number) {
    const unsigned part = parts.of(request.server, number);
    auto port = make_port(*links, request, number, cluster.of_switches(part).memif_socket(), clock);
    ports.push_back(port.get());
    fabric->add(std::move(port));
  }
  fabric->keep_above(std::make_shared<MemifReconnection>(ports));
  return fabric;
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
    .make = make_fabric};

std::uint16_t memif_slots(const control::ClusterSettings& settings) {
  return settings.rates.limited() ? kLimitedSlots : kUnlimitedSlots;
}

}  // namespace gradcube::dataplane
