// The nodes of one process, what joins their ports with those of others, and the pollers that run
// both. The rest of the daemon asks here and does not know which of two it is:
//
// An embedded BCube: all servers in one process, or some, and the emulated fabric between them.
// gradcubed runs it on lcores; the simulation tests poll it under a virtual clock. As long as links
// are unlimited, the switches' shards for queue t run where thread t does, and no packet changes
// cores. A limited link needs one clock for all its queues: then each switch is one shard, and the
// lcores share the switches.
//
// One server, whose ports are as one of the port drivers makes them. The other servers' nodes are
// in other processes, most often on other hosts; what the nodes tell each other travels in frames.
// All frames carry a checksum: who knows what is between two ports? And all ports tell whoever
// hears them which they are: who knows how they are cabled?
//
// Engines that exchange packets lie on one core (control/plan/assignment.h). With at most as many
// lcores as threads, thread t of every server runs on lcore t mod L.
//
// Each poller has a packet memory, in equal shares for its engines.
//
// Ownership: owns packet memory, pollers, nodes and the fabric, and destroys them in the right
// order. The control thread makes and destroys it while no poller runs; the Eal must outlive it.
#ifndef GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_

#include <functional>
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
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "dataplane/fabric/fabric.h"
#include "dataplane/fabric/port_driver.h"
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

  // Of one server whose neighbours are in other processes; null: the fabric is embedded.
  const PortDriver* driver = nullptr;
  std::vector<std::string> ports{};  // what its option names, as checked_names() returns it

  // For simulations of an embedded BCube: the nodes greet each other, and their messages pass the
  // fabric, as those of different processes do.
  bool nodes_greet_each_other = false;
  bool messages_pass_the_fabric = false;
  // Puts others in the place of a server's ports, which outlive the cluster and may bring frames to
  // any queue. Then steering is uncertain.
  std::function<std::vector<Port*>(bcube::ServerId server, const std::vector<Port*>& ports)>
      replace_ports{};
};

class LocalCluster {
 public:
  // Throws control::UsageError or SetupError.
  LocalCluster(const LocalClusterOptions& options, Clock& clock,
               const aggregation::Kernels& kernels, EventSink& events);
  ~LocalCluster();
  LocalCluster(const LocalCluster&) = delete;
  LocalCluster& operator=(const LocalCluster&) = delete;

  // What joins the servers.
  Fabric& fabric() { return *fabric_; }
  // It is emulated. From the first corruption of a link on to the cluster's end, frames must carry
  // a checksum.
  EmbeddedFabric& emulated() { return *emulated_; }
  const EmbeddedFabric& emulated() const { return *emulated_; }
  // Its name in `status`.
  std::string_view fabric_name() const { return driver_ != nullptr ? driver_->name : "embedded"; }
  // Does what the request {"command":"impair",...} asks for and reports. Throws a
  // control::UsageError, which says what else helps, where the links are not emulated here.
  nlohmann::ordered_json impair(const nlohmann::json& request);
  // "switches" of the status, and with emulated links what is wrong with them.
  nlohmann::ordered_json switches_report() const;
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

 private:
  void embed_fabric(const LocalClusterOptions& options);
  void make_server_ports(const LocalClusterOptions& options, Clock& clock);
  void send_messages_in_frames(bool between_nodes_here);
  void demand_checksums();
  void make_pollers(const std::vector<control::Lcore>& lcores, Payloads payloads, Clock& clock);
  void make_packet_memory(const std::vector<PacketSizes>& sizes, Payloads payloads);
  void share_packet_memory();
  std::string ports_say(bcube::ServerId server);
  std::uint16_t queues() const;
  std::size_t poller_of(bcube::ServerId server, std::uint16_t queue) const;
  std::size_t poller_on(unsigned lcore) const;
  std::vector<Port*> ports_of(bcube::ServerId server);
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
  bool announces_ = false;  // nodes that start tell whoever hears their ports which they are

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<unsigned> poller_lcores_;
  std::vector<int> poller_numa_nodes_;
  std::vector<std::unique_ptr<PacketMemory>> memories_;          // one per poller
  std::map<bcube::ServerId, std::vector<PacketShare*>> shares_;  // by engine of the server
  std::unique_ptr<PacketPool> message_frames_;  // null: messages do not pass the fabric
  std::unique_ptr<NodeGroup> nodes_;

  const PortDriver* driver_;
  decltype(LocalClusterOptions::replace_ports) replace_ports_;
  std::unique_ptr<EmbeddedFabric> emulated_;     // of nodes in this process
  std::unique_ptr<ServerFabric> server_fabric_;  // or of one server, by the driver
  Fabric* fabric_ = nullptr;                     // that one of them which there is
};

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_LOCAL_CLUSTER_H_
