// How large the parts of a fabric of NICs are, as fabric_sizing.h says it of the others.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_

#include <cstdint>
#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/fabric/nic/nic_fabric.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// The ports of a server; their pools are left open. nics: by port.
NicFabricOptions nic_fabric_options(const control::ClusterSettings& settings,
                                    bcube::ServerId server, std::vector<std::string> nics);
// That this queue of the server's NICs receives into.
PacketPoolOptions nic_device_pool(const control::ClusterSettings& settings, std::uint16_t queue);
// For copies of all that an engine sends, as a NIC may keep a packet until it needs the place: as
// much as waits in its queue of all ports, and as their NICs hold until they have sent it.
PacketPoolOptions nic_sent_pool(const control::ClusterSettings& settings, std::uint16_t queue);

// Megabytes of memory beside packet_megabytes() of fabric_sizing.h.
unsigned nic_megabytes(const control::ClusterSettings& settings, unsigned queues);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_
