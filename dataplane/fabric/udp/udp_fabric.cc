#include "dataplane/fabric/udp/udp_fabric.h"

#include <fmt/format.h>
#include <memory>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "control/settings/host_list.h"
#include "dataplane/fabric/server_fabric.h"
#include "dataplane/fabric/udp/datagram.h"
#include "dataplane/fabric/udp/udp_port.h"

namespace gradcube::dataplane {

namespace {

// The settings say how long IP packets on the hosts' links may be; frames may travel in several.
void adapt_to_datagrams(control::ClusterSettings& settings) {
  if (settings.hosts.empty()) {
    throw control::UsageError(
        "hosts: the cluster's links are UDP, and nothing says where its servers are; expected "
        "their addresses in [topology] of the cluster file: hosts = [\"10.0.0.1\", \"10.0.0.2\"]");
  }
  settings.frame_mtu =
      mtu_of_frames(settings.mtu, settings.hosts.front().front().is_v6, settings.rates.limited());
}

UdpPortOptions options_of_port(const PortsRequest& request, const bcube::NeighbourTable& neighbours,
                               unsigned number) {
  const control::Topology& topology = request.settings.topology;
  const control::HostList& hosts = request.settings.hosts;
  UdpPortOptions port;
  port.at = control::host_of_port(topology, hosts, request.server, number);
  port.link = bcube::embedded_link_address(number, request.server);
  for (const bcube::Neighbour& neighbour : neighbours.behind(number)) {
    const unsigned far = topology.space().port_of(neighbour.server, neighbour.level,
                                                  neighbours.own_digit(neighbour.level));
    port.peers.push_back(
        {neighbour.address, control::host_of_port(topology, hosts, neighbour.server, far)});
  }
  port.mtu = request.settings.mtu_of_frames();
  port.datagram_mtu = request.settings.mtu;
  port.pools = request.received;
  port.bits_per_second = port_rate(request.settings, request.server, number);
  return port;
}

std::unique_ptr<ServerFabric> make_fabric(const PortsRequest& request, Clock& clock) {
  auto fabric = std::make_unique<ServerFabric>(request.server);
  const bcube::NeighbourTable neighbours(request.settings.topology.space(), request.server);
  for (unsigned number = 0; number < request.settings.topology.ports(); ++number) {
    try {
      fabric->add(std::make_unique<UdpPort>(options_of_port(request, neighbours, number), clock));
    } catch (const control::SetupError& error) {
      throw control::SetupError(fmt::format("port {} of server {}: {}", number,
                                            neighbours.space().text(request.server), error.what()));
    }
  }
  return fabric;
}

}  // namespace

const PortDriver kUdpDriver{
    .name = "udp",
    .option = "",
    .help = "",
    .names = PortDriver::Names::by_settings,
    .steering = Steering::certain,
    .impair_advice =
        "the links of this server are the network's between the hosts, which Gradcube does not "
        "impair: tc-netem does, on an interface",
    .adapt = adapt_to_datagrams,
    .useful_lcores = lcores_by_threads,
    .make = make_fabric};

}  // namespace gradcube::dataplane
