// How large an embedded fabric's parts are, and how its protocol is tuned: what follows from a
// cluster's settings, with the reason for each number beside it in fabric_sizing.cc.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_

#include <cstdint>

#include "control/plan/topology.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/engine/flow.h"

namespace gradcube::dataplane {

// The same for all servers of a cluster.
struct FabricParameters {
  std::uint32_t segment_bytes = 0;  // the most that a segment carries
  std::uint32_t uplink_depth = 0;   // frames between an engine and its wire
  std::uint64_t credit_budget = 0;  // per port and engine, in bytes
  unsigned window = 0;              // segments per flow
  FlowSettings flows;
};
FabricParameters fabric_parameters(const control::ClusterSettings& settings,
                                   unsigned engines_per_server);

// Mbufs of a poller's pool when the poller runs so many of the servers' threads.
std::uint32_t pool_count(const control::Topology& topology, unsigned threads_on_poller,
                         unsigned window);

// The pool that the switches' duplicates and damaged copies come from; all pollers share it.
struct ClonePool {
  std::uint32_t count;
  std::uint32_t frame_bytes;
  std::uint32_t cache;  // mbufs that each lcore may keep for itself
};
ClonePool clone_pool(const control::ClusterSettings& settings);

// The seed of one switch: different for each switch of a cluster and for each seed of a user.
std::uint64_t switch_seed(std::uint64_t cluster_seed, std::size_t switch_index);

// Megabytes of packet memory that EAL must have for such a cluster.
unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
