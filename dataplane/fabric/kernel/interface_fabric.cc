#include "dataplane/fabric/kernel/interface_fabric.h"

#include <memory>

#include "bcube_forwarding/neighbours.h"
#include "dataplane/fabric/kernel/packet_port.h"
#include "dataplane/fabric/server_fabric.h"

namespace gradcube::dataplane {

namespace {

// --- Rings between a port on a network interface and the kernel, in frames per queue. With a rate
// the switch's queue bounds what arrives while the poller is away, and the port keeps to the rate
// itself. Without, the rings bridge the time until the poller gets its core back.
constexpr std::uint32_t kLimitedReceiveRing = 256;
constexpr std::uint32_t kLimitedTransmitRing = 64;

std::unique_ptr<ServerFabric> make_fabric(const PortsRequest& request, Clock& clock) {
  auto fabric = std::make_unique<ServerFabric>(request.server);
  for (unsigned number = 0; number < request.names.size(); ++number) {
    PacketPortOptions port;
    port.interface = request.names[number];
    port.mac = bcube::embedded_link_address(number, request.server).mac;
    port.mtu = request.settings.mtu;
    port.pools = request.received;
    port.bits_per_second = port_rate(request.settings, request.server, number);
    if (port.bits_per_second != 0) {
      port.receive_depth = kLimitedReceiveRing;
      port.transmit_depth = kLimitedTransmitRing;
    }
    fabric->add(std::make_unique<PacketPort>(port, clock));
  }
  return fabric;
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
    .make = make_fabric};

}  // namespace gradcube::dataplane
