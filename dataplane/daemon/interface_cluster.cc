#include "dataplane/daemon/interface_cluster.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "control/base/errors.h"
#include "dataplane/daemon/memif_sizing.h"

namespace gradcube::dataplane {

namespace {

void check_interfaces(const std::vector<std::string>& interfaces,
                      const control::Topology& topology) {
  if (topology.space().cabled()) {
    throw control::UsageError(fmt::format(
        "--interfaces: a {} runs embedded in one process alone, as `gradcube up --topology {}` "
        "starts it; expected bcube:n,k or star:N",
        topology.kind(), topology.spec()));
  }
  if (interfaces.size() != topology.levels()) {
    throw control::UsageError(fmt::format(
        "--interfaces: it names {} and {} has {} levels: name one for each level, level 0 first",
        interfaces.size(), topology.spec(), topology.levels()));
  }
  std::vector<std::string> names = interfaces;
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw control::UsageError(
        fmt::format("--interfaces: it names {} for two levels: a port is at one", *twice));
  }
}

}  // namespace

InterfaceCluster::InterfaceCluster(const InterfaceClusterOptions& options, Clock& clock,
                                   const aggregation::Kernels& kernels, EventSink& events)
    : LocalCluster(options, Payloads::copied, clock, kernels, events),
      message_frames_(message_pool(options.settings.mtu)) {
  if (options.settings.fabric == control::Fabric::memif) {
    make_memif(options, clock);
  } else {
    check_interfaces(options.interfaces, topology());
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
    of_fabric.pools.push_back(memory_of(poller_of(server, queue)).received());
  }
  auto fabric = std::make_unique<InterfaceFabric>(of_fabric, clock);
  interfaces_ = fabric.get();
  fabric->connect(
      [&](std::uint16_t queue) -> Poller& { return *pollers()[poller_of(server, queue)]; });
  fabric_ = std::move(fabric);
}

void InterfaceCluster::make_memif(const InterfaceClusterOptions& options, Clock& clock) {
  const bcube::ServerId server = servers().front();
  MemifFabricOptions of_fabric = memif_fabric_options(settings(), server, options.switches);
  of_fabric.pools.received = memory_of(poller_of(server, 0)).received();
  auto fabric = std::make_unique<MemifFabric>(of_fabric, clock);
  memif_ = fabric.get();
  fabric->connect(*pollers()[poller_of(server, 0)]);
  fabric_ = std::move(fabric);
}

std::uint64_t InterfaceCluster::pool_bytes() const {
  return LocalCluster::pool_bytes() + message_frames_.bytes();
}

}  // namespace gradcube::dataplane
