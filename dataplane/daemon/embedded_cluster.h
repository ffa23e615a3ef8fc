// The nodes of an embedded BCube in one process: all of them, or some; the emulated fabric between
// them; and the pollers that run both. gradcubed runs it on lcores; the simulation tests poll it
// under a virtual clock.
//
// Engines that exchange packets lie on one core (control/plan/assignment.h). With at most as many
// lcores as threads, thread t of every server runs on lcore t mod L. As long as links are
// unlimited, the switches' shards for queue t run there too, and no packet changes cores. A limited
// link needs one clock for all its queues: then each switch is one shard, and the lcores share the
// switches.
//
// Each poller has a packet memory, in equal shares for its engines.
//
// Ownership: owns packet memory, fabric, pollers and nodes, and destroys them in the right order.
// The control thread makes and destroys it while no poller runs; the Eal must outlive it.
#ifndef GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_

#include <map>
#include <memory>
#include <vector>

#include "control/plan/assignment.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/daemon/node_group.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "dataplane/host/packet_memory.h"

namespace gradcube::dataplane {

struct EmbeddedClusterOptions {
  control::ClusterSettings settings;
  // Whose nodes live here, in ascending order; without any: all.
  std::vector<bcube::ServerId> servers;
  std::vector<control::Lcore> lcores;  // one poller each, as far as the assignment uses them
  control::Incarnation incarnation = 1;
  NodeTiming timing{};
  bool nodes_greet_each_other = false;  // as in different processes: for simulations
};

class EmbeddedCluster {
 public:
  // Throws control::UsageError or SetupError.
  EmbeddedCluster(const EmbeddedClusterOptions& options, Clock& clock,
                  const aggregation::Kernels& kernels, EventSink& events);
  ~EmbeddedCluster();
  EmbeddedCluster(const EmbeddedCluster&) = delete;
  EmbeddedCluster& operator=(const EmbeddedCluster&) = delete;

  const control::Topology& topology() const { return topology_; }  // with its links' rates
  const aggregation::Kernels& kernels() const { return kernels_; }
  NodeGroup& nodes() { return *nodes_; }
  const NodeGroup& nodes() const { return *nodes_; }
  // In the order of their queues; the leader engine is among them.
  const std::vector<EngineAt>& engines(bcube::ServerId server) const {
    return nodes_->at(server).engines().all();
  }
  // Of all nodes.
  std::vector<EngineAt> engines() const;

  // Puts in the node of a server that has none: one that was removed starts anew.
  void start_node(bcube::ServerId server, control::Incarnation incarnation);

  // One per lcore in use; lcore_of(i) is where poller i is to run.
  std::vector<std::unique_ptr<Poller>>& pollers() { return pollers_; }
  unsigned lcore_of(std::size_t poller) const { return poller_lcores_[poller]; }

  // What joins the servers. From the first corruption of a link on to the cluster's end, frames
  // must carry a checksum.
  EmbeddedFabric& fabric() { return *fabric_; }
  const EmbeddedFabric& fabric() const { return *fabric_; }

  // In bytes: what pools take; what jobs have reserved for their segments, and could in all.
  std::uint64_t pool_bytes() const;
  std::uint64_t reserved_bytes() const;
  std::uint64_t reservable_bytes() const;
  const FabricParameters& parameters() const { return parameters_; }

 private:
  void make_pollers(const std::vector<control::Lcore>& lcores, Clock& clock);
  void share_packet_memory();
  void make_fabric();
  std::size_t poller_on(unsigned lcore) const;
  std::vector<EnginePlace> places(bcube::ServerId server) const;
  void set_checksums(bool send, bool demand);
  void demand_checksums();

  const bcube::AddressSpace& space() const { return topology_.space(); }

  control::ClusterSettings settings_;
  control::Topology topology_;
  std::vector<bcube::ServerId> servers_;
  const aggregation::Kernels& kernels_;
  EventSink& events_;
  control::Assignment assignment_;
  FabricParameters parameters_;
  bool checksums_demanded_ = false;

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<unsigned> poller_lcores_;
  std::vector<int> poller_numa_nodes_;
  std::vector<std::unique_ptr<PacketMemory>> memories_;          // one per poller
  std::map<bcube::ServerId, std::vector<PacketShare*>> shares_;  // by engine of the server
  std::unique_ptr<EmbeddedFabric> fabric_;
  std::unique_ptr<NodeGroup> nodes_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
