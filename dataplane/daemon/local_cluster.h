// The nodes of one process, what joins their ports with those of others, and the pollers that run
// both. What joins them differs: an embedded fabric (embedded_cluster.h), or links to other
// processes (server_cluster.h). The rest of the daemon asks here and does not know which.
//
// Engines that exchange packets lie on one core (control/plan/assignment.h). With at most as many
// lcores as threads, thread t of every server runs on lcore t mod L.
//
// Each poller has a packet memory, in equal shares for its engines.
//
// Ownership: owns packet memory, pollers and nodes, and destroys them in the right order. The
// control thread makes and destroys it while no poller runs; the Eal must outlive it.
#ifndef GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_

#include <map>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "control/base/hkdf.h"
#include "control/plan/assignment.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/daemon/node/node_group.h"
#include "dataplane/daemon/packet_sizing.h"
#include "dataplane/engine/frame_keys.h"
#include "dataplane/fabric/fabric.h"
#include "dataplane/host/packet_memory.h"

namespace gradcube::dataplane {

struct LocalClusterOptions {
  control::ClusterSettings settings;
  // Whose nodes live here, in ascending order; without any: all.
  std::vector<bcube::ServerId> servers;
  std::vector<control::Lcore> lcores;  // one poller each, as far as the assignment uses them
  control::Incarnation incarnation = 1;
  // Known to nobody else: keys of hashes (EngineSettings) are made of it.
  std::uint64_t secret = 1;
  // Of the cluster: frames that leave the process are authenticated by it. Without, they are not.
  std::optional<control::Secret> key;
  NodeTiming timing{};  // but for greetings.silent_after, which follows from the settings
};

class LocalCluster {
 public:
  virtual ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  // What joins the servers.
  virtual Fabric& fabric() = 0;
  virtual const Fabric& fabric() const = 0;
  // Its name in `status`.
  virtual std::string_view fabric_name() const = 0;
  // Does what the request {"command":"impair",...} asks for and reports. Throws a
  // control::UsageError, which says what else helps, where the links are not emulated here.
  virtual nlohmann::ordered_json impair(const nlohmann::json& request) = 0;
  // "switches" of the status, and with emulated links what is wrong with them.
  virtual nlohmann::ordered_json switches_report() const = 0;
  // In bytes: what pools take.
  std::uint64_t pool_bytes() const;

  // With its links' rates.
  const control::Topology& topology() const { return topology_; }
  // Of a job on all servers that take trainers.
  std::string_view default_algorithm() const { return default_algorithm_; }
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
  const std::vector<std::unique_ptr<Poller>>& pollers() const { return pollers_; }
  unsigned lcore_of(std::size_t poller) const { return poller_lcores_[poller]; }

  // In bytes: what jobs have reserved for their segments, and could in all.
  std::uint64_t reserved_bytes() const;
  std::uint64_t reservable_bytes() const;
  const FabricParameters& parameters() const { return parameters_; }
  // Of all settings that the daemons of a cluster must have in common.
  std::uint32_t fingerprint() const { return digest_.fingerprint; }
  // Of frames that leave the process: the setting's word; nothing if none do.
  std::optional<std::string_view> authentication() const;
  // Null: frames carry no MAC.
  const ClusterKeys* keys() const { return keys_.get(); }
  // The steps of a change of the key (process/key_change.h), in this order. There are keys.
  void take_key(const control::Secret& cluster) { keys_->take(cluster); }
  void exchange_keys();
  void drop_other_key();
  // Rounded up; 1 where other servers are elsewhere.
  unsigned servers_per_core() const;

 protected:
  // payloads: where those that the fabric brings lie. steering: of its ports. Throws
  // control::UsageError or SetupError.
  // Whoever derives makes the fabric, calls start_nodes(), and end_traffic() before the fabric
  // ends.
  LocalCluster(const LocalClusterOptions& options, Payloads payloads, Steering steering,
               Clock& clock, const aggregation::Kernels& kernels, EventSink& events);

  // Before the nodes start. between_nodes_here: those of nodes of this process, too.
  void send_messages_in_frames(bool between_nodes_here);
  void start_nodes(control::Incarnation incarnation);
  // Takes all nodes out and frees all packets: those on their way may still point into the
  // trainers' memory, which goes with the nodes' group.
  void end_traffic();
  // Those that the engines of a server get.
  virtual std::vector<Port*> ports_of(bcube::ServerId server) { return fabric().ports(server); }
  // From now on all frames carry a checksum and are refused without.
  void demand_checksums();
  // Nodes that are started from now on tell whoever hears their ports which they are.
  void announce_ports() { announces_ = true; }

  const control::ClusterSettings& settings() const { return settings_; }
  const std::vector<bcube::ServerId>& servers() const { return servers_; }
  // Of each server; the same for all.
  std::uint16_t queues() const;
  std::size_t poller_of(bcube::ServerId server, std::uint16_t queue) const;
  PacketMemory& memory_of(std::size_t poller) { return *memories_[poller]; }

 private:
  void make_pollers(const std::vector<control::Lcore>& lcores, Payloads payloads, Clock& clock);
  void make_packet_memory(const std::vector<PacketSizes>& sizes, Payloads payloads);
  void share_packet_memory();
  std::string ports_say(bcube::ServerId server);
  std::size_t poller_on(unsigned lcore) const;
  std::vector<EnginePlace> places(bcube::ServerId server, control::Incarnation incarnation) const;
  void set_checksums(bool send, bool demand);

  const bcube::AddressSpace& space() const { return topology_.space(); }

  control::ClusterSettings settings_;
  std::uint64_t secret_;
  std::unique_ptr<ClusterKeys> keys_;  // null: there is none
  control::Topology topology_;
  std::vector<bcube::ServerId> servers_;
  const aggregation::Kernels& kernels_;
  EventSink& events_;
  std::string_view default_algorithm_;
  control::Assignment assignment_;
  FabricParameters parameters_;
  Steering steering_;
  protocol::SettingsDigest digest_;  // as neighbours are told
  bool checksums_demanded_ = false;
  bool announces_ = false;

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<unsigned> poller_lcores_;
  std::vector<int> poller_numa_nodes_;
  std::vector<std::unique_ptr<PacketMemory>> memories_;          // one per poller
  std::map<bcube::ServerId, std::vector<PacketShare*>> shares_;  // by engine of the server
  std::unique_ptr<PacketPool> message_frames_;  // null: messages do not pass the fabric
  std::unique_ptr<NodeGroup> nodes_;
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_
