// What the emulated switches count, as `gradcube status` shows it.
//
// Any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_
#define GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_

#include <nlohmann/json.hpp>

#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

// "switches" of the status: an entry for each, with the sums of its ports.
nlohmann::ordered_json switches_json(const EmbeddedFabric& fabric);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_
