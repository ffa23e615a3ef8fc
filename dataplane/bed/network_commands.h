// What `ip -batch -` and `tc -batch -` are told to make a test bed.
//
// A bridge forwards by the addresses that it has learned, and floods what it does not know; it runs
// no spanning tree and does not look into multicast. With a rate, a token bucket stands at both
// ends of each link. The one at the bridge is the switch port: its queue holds the settings'
// queue_bytes and drops what does not fit. The one at the server lets bursts pass that a pacing
// sender makes, and its queue holds as much as a sender may have under way, so it drops nothing.
// Frames count as on a wire, with preamble, FCS and gap. A bucket stands at both ends of a tree's
// uplink, too, with as many times the queue as servers share it.
//
// Pure functions; each returns lines for one batch.
#ifndef GRADCUBE_DATAPLANE_BED_NETWORK_COMMANDS_H_
#define GRADCUBE_DATAPLANE_BED_NETWORK_COMMANDS_H_

#include <span>
#include <string>
#include <sys/types.h>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/bed/bed_links.h"

namespace gradcube::dataplane {

// For ip, in the namespace of the bed: the switches, and the links with their ports. pids[s] is a
// process in the namespace of server s, which gets the other ends.
std::string switch_side_commands(std::span<const BedLink> links, std::span<const pid_t> pids,
                                 unsigned mtu);
// For ip, in the namespace of the server that has these links.
std::string server_side_commands(std::span<const BedLink> links);
// For ip, in the namespace of the bed, after the switches of the servers: the other switches of a
// tree, and what joins them.
std::string uplink_commands(std::span<const BedUplink> uplinks, unsigned mtu);
// For tc, in the namespace of the bed and of a server. Empty without a rate.
std::string switch_queue_commands(std::span<const BedLink> links,
                                  const control::ClusterSettings& settings);
std::string server_queue_commands(std::span<const BedLink> links,
                                  const control::ClusterSettings& settings);
std::string uplink_queue_commands(std::span<const BedUplink> uplinks,
                                  const control::ClusterSettings& settings);
// For ip, in the namespace of the bed: takes the links' ports down or up. An interface whose port
// is down has no carrier.
std::string link_state_commands(std::span<const BedLink> links, bool up);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_NETWORK_COMMANDS_H_
