// What the emulated switches count, as `gradcube status` shows it.
//
// Any thread.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_
#define GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

// Of the status what impairments_report() says, and "switches": an entry for each, with the sums of
// its ports. seed: the one that the user gave.
nlohmann::ordered_json switches_report(const EmbeddedFabric& fabric, std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_SWITCH_STATUS_H_
