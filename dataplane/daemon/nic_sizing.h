// How large the parts of a fabric of NICs are, as fabric_sizing.h says it of the others.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_

#include <string>
#include <vector>

#include "control/settings/cluster_settings.h"
#include "dataplane/fabric/nic/nic_fabric.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// The ports of a server; their pools are left open. nics: by port.
NicFabricOptions nic_fabric_options(const control::ClusterSettings& settings,
                                    bcube::ServerId server, std::vector<std::string> nics);
// That the server's NICs receive into.
PacketPoolOptions nic_device_pool(const control::ClusterSettings& settings);
// For copies of all that a server sends, as a NIC may keep a packet until it needs the place: as
// much as waits in all of its ports, and as their NICs hold until they have sent it.
PacketPoolOptions nic_sent_pool(const control::ClusterSettings& settings);

// Megabytes of memory beside packet_megabytes() of fabric_sizing.h.
unsigned nic_megabytes(const control::ClusterSettings& settings);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_NIC_SIZING_H_
