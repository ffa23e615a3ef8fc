// The node of one server, whose ports are network interfaces of the kernel, NICs that DPDK drives,
// or memif links to emulated switches in other processes. The other servers' nodes are in other
// processes, too, most often on other hosts; what the nodes tell each other travels in frames.
//
// All frames carry a checksum: who knows what is between two interfaces? And all ports tell whoever
// hears them which they are: who knows how they are cabled?
//
// Ownership and threads: as local_cluster.h says. Owns the fabric.
#ifndef GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "control/settings/run_directory.h"
#include "dataplane/daemon/local_cluster.h"
#include "dataplane/fabric/kernel/interface_fabric.h"
#include "dataplane/fabric/nic/ethdev_fabric.h"

namespace gradcube::dataplane {

struct InterfaceClusterOptions : LocalClusterOptions {
  // By port: interfaces, or the PCI addresses of NICs. Neither: the ports are memif links to the
  // switches of the cluster in this directory.
  std::vector<std::string> interfaces;
  std::vector<std::string> nics;
  control::RunDirectory switches{""};
};

// Of such a server's ports. nics: as above.
Steering steering_of_ports(const control::ClusterSettings& settings,
                           const std::vector<std::string>& nics);

class InterfaceCluster final : public LocalCluster {
 public:
  // options.servers is one server. Throws control::UsageError or SetupError.
  InterfaceCluster(const InterfaceClusterOptions& options, Clock& clock,
                   const aggregation::Kernels& kernels, EventSink& events);
  ~InterfaceCluster() override;

  Fabric& fabric() override { return *fabric_; }
  // What it is; null if it is the other one.
  InterfaceFabric* interfaces() { return interfaces_; }
  EthdevFabric* ethdevs() { return ethdevs_; }

  std::uint64_t pool_bytes() const override;

 private:
  void make_interfaces(const InterfaceClusterOptions& options, Clock& clock);
  void make_memif(const InterfaceClusterOptions& options, Clock& clock);
  void make_nics(const InterfaceClusterOptions& options, Clock& clock);
  PacketPool& received(std::uint16_t queue);
  void take(std::unique_ptr<EthdevFabric> fabric);
  template <typename KindOfPort>
  void connect(ServerFabric<KindOfPort>& fabric) {
    fabric.connect([this](std::uint16_t queue) -> Poller& {
      return *pollers()[poller_of(servers().front(), queue)];
    });
  }

  PacketPool message_frames_;
  std::deque<PacketPool> nic_pools_;  // of each queue two
  std::unique_ptr<Fabric> fabric_;
  InterfaceFabric* interfaces_ = nullptr;
  EthdevFabric* ethdevs_ = nullptr;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_
