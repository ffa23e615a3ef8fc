// How large the emulated switches of the memif fabric are, as fabric_sizing.h says it of other
// fabrics.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_MEMIF_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_MEMIF_SIZING_H_

#include <filesystem>

#include "control/settings/cluster_settings.h"
#include "dataplane/fabric/memif/memif_switches.h"
#include "dataplane/host/packet_pool.h"

namespace gradcube::dataplane {

// How many queues each of a server's ports has, and each memif at a switch: as many as the server
// has engines on server_lcores.
std::uint16_t memif_queues(const control::ClusterSettings& settings);

// The switches of part `part` (control/settings/switch_parts.h) at this socket; their pool is left
// open.
MemifSwitchesOptions memif_switches_options(const control::ClusterSettings& settings, unsigned part,
                                            std::filesystem::path socket);
// For all frames that are in them.
PacketPoolOptions memif_frames_pool(const control::ClusterSettings& settings, unsigned part);

// Megabytes of memory that EAL must have for such switches.
unsigned memif_switches_megabytes(const control::ClusterSettings& settings, unsigned part);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_MEMIF_SIZING_H_
