// The node of one server, whose ports are network interfaces of the kernel. The other servers' are
// in other processes, most often on other hosts; what the nodes tell each other travels in frames.
//
// All frames carry a checksum: who knows what is between two interfaces? And all ports tell whoever
// hears them which they are: who knows how they are cabled?
//
// Ownership and threads: as local_cluster.h says. Owns the fabric.
#ifndef GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "dataplane/daemon/local_cluster.h"
#include "dataplane/fabric/kernel/interface_fabric.h"

namespace gradcube::dataplane {

struct InterfaceClusterOptions : LocalClusterOptions {
  std::vector<std::string> interfaces;  // by level
};

class InterfaceCluster final : public LocalCluster {
 public:
  // options.servers is one server. Throws control::UsageError or SetupError.
  InterfaceCluster(const InterfaceClusterOptions& options, Clock& clock,
                   const aggregation::Kernels& kernels, EventSink& events);
  ~InterfaceCluster() override;

  InterfaceFabric& fabric() override { return *fabric_; }

  std::uint64_t pool_bytes() const override;

 private:
  void make_fabric(const InterfaceClusterOptions& options, Clock& clock);

  PacketPool message_frames_;
  std::unique_ptr<InterfaceFabric> fabric_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_INTERFACE_CLUSTER_H_
