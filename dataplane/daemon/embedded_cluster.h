// A whole BCube in one process: every server's engines, the fabric between them, and the pollers
// that run both. `gradcubed --all` runs it on lcores; the simulation tests poll it under a
// virtual clock.
//
// Engines that exchange packets lie on one core (control/plan/assignment.h). With at most as many
// lcores as threads, thread t of every server runs on lcore t mod L. As long as links are
// unlimited, the switches' shards for queue t run there too, and no packet changes cores. A limited
// link needs one clock for all its queues: then each switch is one shard, and the lcores share the
// switches.
//
// Ownership: owns plan, pools, fabric, engines and pollers, and destroys them in the right
// order. The control thread makes and destroys it while no poller runs; the Eal must outlive it.
#ifndef GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_

#include <memory>
#include <vector>

#include "control/plan/assignment.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/cluster.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

class EmbeddedCluster final : public Cluster {
 public:
  // lcores: one poller each, as far as the assignment uses them. Throws control::UsageError or
  // SetupError.
  EmbeddedCluster(const control::ClusterSettings& settings,
                  const std::vector<control::Lcore>& lcores, Clock& clock,
                  const aggregation::Kernels& kernels, EventSink& events);
  ~EmbeddedCluster() override;

  const control::Topology& topology() const override { return settings_.topology; }
  const aggregation::Kernels& kernels() const override { return kernels_; }
  const std::vector<EngineAt>& engines(bcube::ServerId server) const override {
    return engines_at_[server];
  }

  void discard_packets() override;

  // One per lcore in use; lcore_of(i) is where poller i is to run.
  std::vector<std::unique_ptr<Poller>>& pollers() { return pollers_; }
  unsigned lcore_of(std::size_t poller) const { return poller_lcores_[poller]; }

  // What joins the servers. From the first corruption of a link on to the cluster's end, frames
  // must carry a checksum.
  EmbeddedFabric& fabric() { return *fabric_; }
  const EmbeddedFabric& fabric() const { return *fabric_; }

  std::uint64_t pool_bytes() const;
  const FabricParameters& parameters() const { return parameters_; }

 private:
  void make_pollers(const std::vector<control::Lcore>& lcores, Clock& clock);
  void make_fabric();
  void make_engines(EventSink& events);
  void connect_fabric();
  void set_checksums(bool send, bool demand);
  void demand_checksums();

  const bcube::AddressSpace& space() const { return settings_.topology.space(); }

  control::ClusterSettings settings_;
  const aggregation::Kernels& kernels_;
  control::Assignment assignment_;
  FabricParameters parameters_;

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<unsigned> poller_lcores_;
  std::vector<std::unique_ptr<PacketPool>> pools_;  // one per poller
  std::unique_ptr<EmbeddedFabric> fabric_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::vector<EngineAt>> engines_at_;  // [server][queue]
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
