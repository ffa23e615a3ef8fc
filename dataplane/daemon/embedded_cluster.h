// The nodes of an embedded BCube in one process: all of them, or some, and the emulated fabric
// between them. gradcubed runs it on lcores; the simulation tests poll it under a virtual clock.
//
// As long as links are unlimited, the switches' shards for queue t run where thread t does, and no
// packet changes cores. A limited link needs one clock for all its queues: then each switch is one
// shard, and the lcores share the switches.
//
// Ownership and threads: as local_cluster.h says. Owns the fabric.
#ifndef GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_

#include <functional>
#include <memory>
#include <vector>

#include "dataplane/daemon/local_cluster.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

struct EmbeddedClusterOptions : LocalClusterOptions {
  // For simulations: the nodes greet each other, and their messages pass the fabric, as those of
  // different processes do.
  bool nodes_greet_each_other = false;
  bool messages_pass_the_fabric = false;
  // Puts others in the place of a server's ports, which outlive the cluster and may bring frames to
  // any queue. Then steering is uncertain.
  std::function<std::vector<Port*>(bcube::ServerId server, const std::vector<Port*>& ports)>
      replace_ports{};
};

class EmbeddedCluster final : public LocalCluster {
 public:
  // Throws control::UsageError or SetupError.
  EmbeddedCluster(const EmbeddedClusterOptions& options, Clock& clock,
                  const aggregation::Kernels& kernels, EventSink& events);
  ~EmbeddedCluster() override;

  // From the first corruption of a link on to the cluster's end, frames must carry a checksum.
  EmbeddedFabric& fabric() override { return *fabric_; }
  const EmbeddedFabric& fabric() const override { return *fabric_; }
  std::string_view fabric_name() const override { return "embedded"; }
  nlohmann::ordered_json impair(const nlohmann::json& request) override;
  nlohmann::ordered_json switches_report() const override;

 private:
  std::vector<Port*> ports_of(bcube::ServerId server) override;
  void make_fabric();

  decltype(EmbeddedClusterOptions::replace_ports) replace_ports_;
  std::unique_ptr<EmbeddedFabric> fabric_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
