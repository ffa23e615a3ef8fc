#include "dataplane/daemon/interface_cluster.h"

#include <algorithm>
#include <fmt/format.h>

#include "control/base/errors.h"

namespace gradcube::dataplane {

InterfaceCluster::InterfaceCluster(const InterfaceClusterOptions& options, Clock& clock,
                                   const aggregation::Kernels& kernels, EventSink& events)
    : LocalCluster(options, Payloads::copied, clock, kernels, events),
      message_frames_(message_pool(options.settings.mtu)) {
  if (topology().space().cabled()) {
    throw control::UsageError(fmt::format(
        "--interfaces: a {} runs embedded in one process alone, as `gradcube up --topology {}` "
        "starts it; expected bcube:n,k or star:N",
        topology().kind(), topology().spec()));
  }
  if (options.interfaces.size() != topology().levels()) {
    throw control::UsageError(fmt::format(
        "--interfaces: it names {} and {} has {} levels: name one for each level, level 0 first",
        options.interfaces.size(), topology().spec(), topology().levels()));
  }
  std::vector<std::string> names = options.interfaces;
  std::sort(names.begin(), names.end());
  if (const auto twice = std::adjacent_find(names.begin(), names.end()); twice != names.end()) {
    throw control::UsageError(
        fmt::format("--interfaces: it names {} for two levels: a port is at one", *twice));
  }
  make_fabric(options, clock);
  nodes().carry_messages({&message_frames_, full_frame_bytes(settings().mtu), fingerprint()},
                         false);
  announce_ports();
  start_nodes(options.incarnation);
  demand_checksums();
}

InterfaceCluster::~InterfaceCluster() { end_traffic(); }

void InterfaceCluster::make_fabric(const InterfaceClusterOptions& options, Clock& clock) {
  const bcube::ServerId server = servers().front();
  InterfaceFabricOptions of_fabric = interface_fabric_options(settings(), options.interfaces);
  of_fabric.server = server;
  for (std::uint16_t queue = 0; queue < queues(); ++queue) {
    of_fabric.pools.push_back(memory_of(poller_of(server, queue)).received());
  }
  fabric_ = std::make_unique<InterfaceFabric>(of_fabric, clock);
  fabric_->connect(
      [&](std::uint16_t queue) -> Poller& { return *pollers()[poller_of(server, queue)]; });
}

std::uint64_t InterfaceCluster::pool_bytes() const {
  return LocalCluster::pool_bytes() + message_frames_.bytes();
}

}  // namespace gradcube::dataplane
