// How large an embedded fabric's parts are, and how its protocol is tuned: what follows from a
// cluster's settings, with the reason for each number beside it in fabric_sizing.cc.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_

#include <cstdint>
#include <vector>

#include "control/plan/topology.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/engine/flow.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"
#include "protocol/port_credit.h"

namespace gradcube::dataplane {

// The same for all servers of a cluster.
struct FabricParameters {
  std::uint32_t segment_bytes = 0;  // the most that a segment carries
  std::uint32_t block_bytes = 0;    // short pieces travel together up to so many
  unsigned window = 0;              // segments per flow
  FlowSettings flows;
  // Of a server's ports, by level.
  std::vector<std::uint32_t> uplink_depth;  // frames between an engine and its wire
  std::vector<protocol::CreditSettings> credit;
  Nanoseconds greeting_interval = 0;  // over each link; 0: none
};
FabricParameters fabric_parameters(const control::ClusterSettings& settings);

// The packet memory of one of `pollers` pollers, which runs so many of the servers' threads. Only
// what jobs reserve of it is ever touched.
struct PacketSizes {
  std::uint32_t segments = 0;  // that jobs can reserve
  std::uint32_t answers = 0;   // packets for acknowledgements and probes
  std::uint32_t idle = 0;      // packets that lie idle in the caches of lcores
};
PacketSizes packet_sizes(const control::ClusterSettings& settings, unsigned pollers,
                         unsigned threads_on_poller);

// The embedded fabric that such a cluster's servers need, or some of them (in ascending order).
EmbeddedFabricOptions embedded_fabric_options(const control::ClusterSettings& settings,
                                              const FabricParameters& parameters,
                                              unsigned engines_per_server,
                                              std::vector<bcube::ServerId> servers);

// Megabytes of memory that EAL must have for such a cluster, if its jobs reserve all they can.
unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
