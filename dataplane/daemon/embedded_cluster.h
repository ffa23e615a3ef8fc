// A whole BCube in one process: every server's engines, the emulated switches between them, and the
// pollers that turn both. What `gradcubed --all` runs, and what the simulation tests turn by hand
// under a virtual clock.
//
// Work is spread so that what talks to each other lies on one core (control/plan/assignment.h): with at
// most as many lcores as threads, thread t of every server runs on lcore t mod L, and, as long as
// links are unlimited, the switches' shards for queue t run there too, so that no packet ever
// changes cores. A limited link needs one clock for all its queues: then each switch is one shard,
// and the switches are dealt out to the lcores.
//
// Ownership: owns plan, pools, ports, switches, engines and pollers, destroyed in the right order.
// Made and destroyed by the control thread while no poller runs; needs an Eal that outlives it.
#ifndef GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_
#define GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_CLUSTER_H_

#include <memory>
#include <string>
#include <vector>

#include "control/plan/assignment.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/cluster.h"
#include "dataplane/fabric/emulated/emulated_switch.h"
#include "dataplane/fabric/emulated/ring_port.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// What follows from a cluster's settings, for all its servers alike.
struct FabricParameters {
  std::uint32_t segment_bytes;  // the most that a segment carries
  std::uint32_t uplink_depth;   // frames between an engine and its wire
  std::uint64_t credit_budget;  // per port and engine, in bytes
  unsigned window;              // segments per flow
  FlowSettings flows;
};
FabricParameters fabric_parameters(const control::ClusterSettings& settings,
                                   unsigned engines_per_server);

// Megabytes of packet memory that such a cluster needs, for EAL.
unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores);

class EmbeddedCluster final : public Cluster {
 public:
  // lcores: one poller each, as far as the assignment uses them. Throws control::UsageError or
  // SetupError.
  EmbeddedCluster(const control::ClusterSettings& settings,
                  const std::vector<control::Lcore>& lcores, Clock& clock,
                  const aggregation::Kernels& kernels, EventSink& events);
  ~EmbeddedCluster() override;

  const control::Plan& plan() const override { return plan_; }
  const aggregation::Kernels& kernels() const override { return kernels_; }
  const std::vector<EngineAt>& engines(bcube::ServerId server) const override {
    return engines_at_[server];
  }

  void discard_packets() override;

  // One per lcore in use; lcore_of(i) is where poller i is to run.
  std::vector<std::unique_ptr<Poller>>& pollers() { return pollers_; }
  unsigned lcore_of(std::size_t poller) const { return poller_lcores_[poller]; }

  struct SwitchAt {
    unsigned level;
    std::string name;  // "1/[*,0]": its level, and the digits its servers share
    std::unique_ptr<EmulatedSwitch> fabric;
  };
  const std::vector<SwitchAt>& switches() const { return switches_; }
  const RingPort& port(bcube::ServerId server, unsigned level) const {
    return *ports_[server][level];
  }

  // Changes what the switches do to frames. Frames carry a checksum, and must, from the first
  // corruption on, to the cluster's end.
  void set_impairments(const Impairments& impairments);
  const Impairments& impairments() const { return impairments_; }

  std::uint64_t pool_bytes() const;
  const FabricParameters& parameters() const { return parameters_; }

 private:
  void make_pollers(const std::vector<control::Lcore>& lcores, Clock& clock);
  void make_ports();
  void make_engines(EventSink& events);
  void make_switches();
  void make_switch(unsigned level, bcube::ServerId first);
  void connect(EmulatedSwitch& fabric, unsigned level, const std::vector<bcube::ServerId>& servers);
  Poller& poller_of(bcube::ServerId server, unsigned queue) const {
    return *engines_at_[server][queue].poller;
  }
  void set_checksums(bool send, bool demand);

  control::ClusterSettings settings_;
  control::Plan plan_;
  const aggregation::Kernels& kernels_;
  control::Assignment assignment_;
  FabricParameters parameters_;
  Impairments impairments_;

  std::vector<std::unique_ptr<Poller>> pollers_;
  std::vector<unsigned> poller_lcores_;
  std::vector<std::unique_ptr<PacketPool>> pools_;  // one per poller
  std::unique_ptr<PacketPool> clones_;
  std::vector<std::vector<std::unique_ptr<RingPort>>> ports_;  // [server][level]
  std::vector<SwitchAt> switches_;
  std::vector<std::unique_ptr<Engine>> engines_;
  std::vector<std::vector<EngineAt>> engines_at_;  // [server][queue]
};

}  // namespace gradcube::dataplane

#endif
