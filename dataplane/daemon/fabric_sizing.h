// How large a fabric's parts are, and how its protocol is tuned: what follows from a cluster's
// settings, with the reason for each number beside it in fabric_sizing.cc.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/plan/base/topology.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/fabric/fabric.h"
#include "dataplane/host/clock.h"
#include "dataplane/host/packet_pool.h"
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
  Nanoseconds silent_after = 0;       // a daemon that nothing is heard of ends its jobs
  Nanoseconds probing_interval = 0;   // of flows' paths; 0: none
};

// Where the payload of a received frame lies.
enum class Payloads : std::uint8_t {
  referenced,  // in the memory of its sender's trainer: both run in this process
  copied,      // in a packet of this server, the only one of its process
};

FabricParameters fabric_parameters(const control::ClusterSettings& settings,
                                   Payloads payloads = Payloads::referenced);
// Of a server's ports, by level: as the parameters have it, but for those of a rate of their own.
std::vector<protocol::CreditSettings> credit_of(const control::ClusterSettings& settings,
                                                const FabricParameters& parameters,
                                                bcube::ServerId server);

// Frames between an engine and a wire of this rate.
std::uint32_t uplink_depth(const control::ClusterSettings& settings, std::uint64_t rate);

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

#endif  // GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
