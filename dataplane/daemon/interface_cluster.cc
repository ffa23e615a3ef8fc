#include "dataplane/daemon/interface_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <string_view>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/daemon/memif_sizing.h"
#include "dataplane/daemon/nic_sizing.h"

namespace gradcube::dataplane {

namespace {

// option: that has named them.
void check_ports(std::string_view option, std::vector<std::string> names,
                 const control::Topology& topology) {
  if (names.size() != topology.ports()) {
    throw control::UsageError(
        topology.space().cabled()
            ? fmt::format("{}: it names {} and {} has {} ports: name one for each; of each level "
                          "first the one to the next server, level 0 first",
                          option, names.size(), topology.spec(), topology.ports())
            : fmt::format("{}: it names {} and {} has {} levels: name one for each level, level 0 "
                          "first",
                          option, names.size(), topology.spec(), topology.levels()));
  }
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw control::UsageError(fmt::format("{}: it names {} for two ports", option, *twice));
  }
}

}  // namespace

Steering steering_of_ports(const control::ClusterSettings& settings,
                           const std::vector<std::string>& nics) {
  const bool are_ethdevs = settings.fabric == control::FabricKind::memif || !nics.empty();
  return are_ethdevs ? Steering::uncertain : Steering::certain;
}

InterfaceCluster::InterfaceCluster(const InterfaceClusterOptions& options, Clock& clock,
                                   const aggregation::Kernels& kernels, EventSink& events)
    : LocalCluster(options, Payloads::copied, steering_of_ports(options.settings, options.nics),
                   clock, kernels, events),
      message_frames_(message_pool(options.settings.mtu)) {
  if (options.settings.fabric == control::FabricKind::memif) {
    make_memif(options, clock);
  } else if (!options.nics.empty()) {
    check_ports("--nics", options.nics, topology());
    make_nics(options, clock);
  } else {
    check_ports("--interfaces", options.interfaces, topology());
    make_interfaces(options, clock);
  }
  nodes().carry_messages({&message_frames_, full_frame_bytes(settings().mtu), fingerprint()},
                         false);
  announce_ports();
  start_nodes(options.incarnation);
  demand_checksums();
}

InterfaceCluster::~InterfaceCluster() { end_traffic(); }

void InterfaceCluster::make_interfaces(const InterfaceClusterOptions& options, Clock& clock) {
  const bcube::ServerId server = servers().front();
  InterfaceFabricOptions of_fabric = interface_fabric_options(settings(), options.interfaces);
  of_fabric.server = server;
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    of_fabric.pools.push_back(&received(queue));
  }
  auto fabric = std::make_unique<InterfaceFabric>(of_fabric, clock);
  interfaces_ = fabric.get();
  connect(*fabric);
  fabric_ = std::move(fabric);
}

void InterfaceCluster::make_memif(const InterfaceClusterOptions& options, Clock& clock) {
  MemifFabricOptions of_fabric =
      memif_fabric_options(settings(), servers().front(), options.switches);
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    of_fabric.pools.push_back({.received = &received(queue), .device = nullptr, .sent = nullptr});
  }
  take(std::make_unique<MemifFabric>(of_fabric, clock));
}

void InterfaceCluster::make_nics(const InterfaceClusterOptions& options, Clock& clock) {
  NicFabricOptions of_fabric = nic_fabric_options(settings(), servers().front(), options.nics);
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    PacketPool& into = nic_pools_.emplace_back(nic_device_pool(settings(), queue));
    PacketPool& out = nic_pools_.emplace_back(nic_sent_pool(settings(), queue));
    of_fabric.pools.push_back({.received = &received(queue), .device = &into, .sent = &out});
  }
  take(std::make_unique<NicFabric>(of_fabric, clock));
}

PacketPool& InterfaceCluster::received(std::uint16_t queue) {
  return *memory_of(poller_of(servers().front(), queue)).received();
}

void InterfaceCluster::take(std::unique_ptr<EthdevFabric> fabric) {
  ethdevs_ = fabric.get();
  connect(*fabric);
  fabric_ = std::move(fabric);
}

std::uint64_t InterfaceCluster::pool_bytes() const {
  std::uint64_t bytes = LocalCluster::pool_bytes() + message_frames_.bytes();
  for (const PacketPool& pool : nic_pools_) bytes += pool.bytes();
  return bytes;
}

}  // namespace gradcube::dataplane
