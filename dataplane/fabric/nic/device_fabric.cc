#include "dataplane/fabric/nic/device_fabric.h"

#include <algorithm>
#include <fmt/format.h>
#include <iterator>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <vector>

#include "bcube_forwarding/neighbours.h"
#include "control/base/errors.h"
#include "dataplane/fabric/frame_fields.h"
#include "dataplane/fabric/nic/ethdev_port.h"
#include "dataplane/host/memory_units.h"

namespace gradcube::dataplane {

namespace {

// --- Descriptors of a device's rings. With a rate the switch's queue bounds what arrives while the
// poller is away, and the port keeps to the rate itself. Without, the rings bridge the time until
// the poller gets its core back. All devices have that many.
constexpr std::uint16_t kLimitedDescriptors = 128;
constexpr std::uint16_t kUnlimitedDescriptors = 512;

std::uint16_t descriptors(const control::ClusterSettings& settings) {
  return settings.rates.limited() ? kLimitedDescriptors : kUnlimitedDescriptors;
}

PacketPoolOptions frames(const char* name, std::uint16_t queue, std::uint32_t count,
                         const control::ClusterSettings& settings) {
  return {.name = fmt::format("{}-{}", name, queue),
          .count = count,
          .frame_bytes = settings.mtu + kEthernetBytes,
          .cache = 0};
}

// Drivers ask for this room in what they receive into, however small the MTU is: net_af_packet has
// frames of 2 KB by default.
constexpr std::uint32_t kReceivedFrameBytes = 2048;

// That a queue receives into: full rings, and as much in a burst.
PacketPoolOptions device_pool(const control::ClusterSettings& settings, std::uint16_t queue) {
  PacketPoolOptions options =
      frames("device", queue, settings.topology.ports() * 2 * descriptors(settings), settings);
  options.frame_bytes = std::max(options.frame_bytes, kReceivedFrameBytes);
  return options;
}

// For copies of all that an engine sends, as a device may keep a packet until it needs the place:
// as much as waits in its queue of all ports, and as their devices hold until they have sent it.
PacketPoolOptions sent_pool(const control::ClusterSettings& settings, std::uint16_t queue) {
  const std::uint32_t of_a_port = EthdevPortOptions{}.backlog + descriptors(settings);
  return frames("sent", queue, settings.topology.ports() * of_a_port, settings);
}

// It receives for this address from now on: for it alone where it can filter by it, else for all.
void set_link_address(std::uint16_t device, const std::string& what,
                      const bcube::LinkAddress& address) {
  rte_ether_addr own{};
  std::copy(address.mac.begin(), address.mac.end(), std::begin(own.addr_bytes));
  if (rte_eth_dev_default_mac_addr_set(device, &own) == 0) return;
  const int failed = rte_eth_promiscuous_enable(device);
  if (failed == 0) return;
  throw control::SetupError(
      fmt::format("{} can neither have another MAC address nor receive for all: {}", what,
                  rte_strerror(-failed)));
}

std::vector<EthdevQueuePools> add_pools(ServerFabric& fabric, const PortsRequest& request) {
  std::vector<EthdevQueuePools> queues;
  for (PacketPool* received : request.received) {
    const auto queue = static_cast<std::uint16_t>(queues.size());
    const auto add_pool = [&](PacketPoolOptions options) {
      options.numa_node = received->numa_node();
      return &fabric.add_pool(options);
    };
    PacketPool* const into = add_pool(device_pool(request.settings, queue));
    PacketPool* const out = add_pool(sent_pool(request.settings, queue));
    queues.push_back({.received = received, .device = into, .sent = out});
  }
  return queues;
}

}  // namespace

std::unique_ptr<ServerFabric> make_device_fabric(const PortsRequest& request, Clock& clock,
                                                 NamedDevice (*find)(const std::string& name,
                                                                     ServerFabric& fabric)) {
  auto fabric = std::make_unique<ServerFabric>(request.server);
  EthdevPortOptions port;
  port.mtu = request.settings.mtu;
  port.pools = add_pools(*fabric, request);
  port.receive_depth = descriptors(request.settings);
  port.transmit_depth = port.receive_depth;
  port.receive_interrupts = true;
  port.tells_of_device = true;
  for (unsigned number = 0; number < request.names.size(); ++number) {
    const NamedDevice device = find(request.names[number], *fabric);
    port.device = device.number;
    port.name = device.name;
    port.bits_per_second = port_rate(request.settings, request.server, number);
    set_link_address(port.device, port.name, bcube::embedded_link_address(number, request.server));
    fabric->add(std::make_unique<EthdevPort>(port, clock));
  }
  return fabric;
}

unsigned device_megabytes(const control::ClusterSettings& settings, unsigned queues) {
  std::uint64_t bytes = 0;
  for (const PacketPoolOptions& pool : {device_pool(settings, 0), sent_pool(settings, 0)}) {
    bytes += std::uint64_t{queues} * pool.count * (pool.frame_bytes + kPacketBytes);
  }
  return static_cast<unsigned>((bytes + bytes / kHeapReserve) / kMegabyte + 1);
}

}  // namespace gradcube::dataplane
