#include "dataplane/fabric/kernel/interface_fabric.h"

#include "bcube_forwarding/neighbours.h"

namespace gradcube::dataplane {

namespace {

// --- Rings between a port on a network interface and the kernel, in frames per queue. With a rate
// the switch's queue bounds what arrives while the poller is away, and the port keeps to the rate
// itself. Without, the rings bridge the time until the poller gets its core back.
constexpr std::uint32_t kLimitedReceiveRing = 256;
constexpr std::uint32_t kLimitedTransmitRing = 64;

std::unique_ptr<ServerPorts> make_interfaces(const PortsRequest& request, Clock& clock) {
  InterfaceFabricOptions options;
  options.server = request.server;
  options.interfaces = request.names;
  options.mtu = request.settings.mtu;
  options.bits_per_second = port_rates(request.settings);
  options.pools = request.received;
  if (request.settings.rates.limited()) {
    options.receive_depth = kLimitedReceiveRing;
    options.transmit_depth = kLimitedTransmitRing;
  }
  return std::make_unique<InterfaceFabric>(options, clock);
}

}  // namespace

const PortDriver kInterfaceDriver{
    .name = "interfaces",
    .option = "--interfaces",
    .help =
        "the server's ports: a network interface for each level, level 0 first "
        "(\"eth1,eth2\"); on a torus two, first that to the next server. They must be up, and "
        "should have no IP address",
    .steering = Steering::certain,
    .impair_advice =
        "the links of this server are not emulated: `ip link set dev INTERFACE down` "
        "takes one down",
    .adapt = refuse_emulation,
    .useful_lcores = lcores_by_threads,
    .make = make_interfaces};

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
