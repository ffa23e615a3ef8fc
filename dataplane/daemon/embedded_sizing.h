// What an embedded fabric is made with, as fabric_sizing.h says it of all fabrics.
//
// Pure functions; any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_SIZING_H_
#define GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_SIZING_H_

#include <vector>

#include "bcube_forwarding/address.h"
#include "control/settings/cluster_settings.h"
#include "dataplane/daemon/fabric_sizing.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

// The embedded fabric that such a cluster's servers need, or some of them (in ascending order).
EmbeddedFabricOptions embedded_fabric_options(const control::ClusterSettings& settings,
                                              const FabricParameters& parameters,
                                              unsigned engines_per_server,
                                              std::vector<bcube::ServerId> servers);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_EMBEDDED_SIZING_H_
