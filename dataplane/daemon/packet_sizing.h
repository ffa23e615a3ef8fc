// How much packet memory a process needs: what follows from a cluster's settings, with the reason
// for each number beside it in packet_sizing.cc.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_PACKET_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_PACKET_SIZING_H_

#include <cstdint>

#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/fabric_sizing.h"  // for Payloads
#include "dataplane/fabric/fabric.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// The packet memory of one of `pollers` pollers, which runs so many of the servers' threads. Only
// what jobs reserve of it is ever touched.
struct PacketSizes {
  std::uint32_t segments = 0;  // that jobs can reserve
  std::uint32_t answers = 0;   // packets for acknowledgements and probes
  std::uint32_t idle = 0;      // packets that lie idle in the caches of lcores
  // With copied payloads: frames that are received and belong to no segment of a job.
  std::uint32_t received_beside = 0;
};
// With uncertain steering a frame may come in at any poller of its server: then each has room for
// the received frames of all.
PacketSizes packet_sizes(const control::ClusterSettings& settings, unsigned pollers,
                         unsigned threads_on_poller, Payloads payloads = Payloads::referenced,
                         Steering steering = Steering::certain);

// Of a frame with the longest IP packet.
std::uint32_t full_frame_bytes(unsigned mtu);

// For the frames of messages to the daemons of other processes.
PacketPoolOptions message_pool(unsigned mtu);

// Megabytes of memory that EAL must have for a process that runs such a cluster, or one server of
// it with copied payloads, if its jobs reserve all they can.
unsigned packet_megabytes(const control::ClusterSettings& settings, unsigned lcores,
                          Payloads payloads = Payloads::referenced,
                          Steering steering = Steering::certain);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_PACKET_SIZING_H_
