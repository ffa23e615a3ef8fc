// How large a fabric's parts are, and how its protocol is tuned: what follows from a cluster's
// settings, with the reason for each number beside it in fabric_sizing.cc.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_

#include <cstdint>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/engine/flows/flow.h"
#include "dataplane/host/clock.h"
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
  unsigned padded_sixteenths = 0;     // of a padded greeting, that a port may send in that time
  protocol::Nanoseconds padded_time = 0;
  Nanoseconds silent_after = 0;      // a daemon that nothing is heard of ends its jobs
  Nanoseconds probing_interval = 0;  // of flows' paths; 0: none
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

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_FABRIC_SIZING_H_
