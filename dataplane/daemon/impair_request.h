// The request {"command":"impair",...} of the control socket: changes what goes wrong on links
// while the cluster runs.
//
// A link is between a server and a switch; its probabilities concern the frames that the server
// sends. A link that is down carries no frames in either direction. Keys, all optional:
//
//   "server": "2,1", "level": 1, "switch": "1/[*,2]"    which links: those that fit every key given
//   "clear": true                                       no faults: all probabilities 0, links up
//   "loss", "duplicate", "reorder", "corrupt": 0.01     probabilities, after "clear"
//   "up": false                                         takes links down, true: up; after "clear"
//
// What no key names stays as it is.
//
// The control thread's.
#ifndef GRADCUBE_DATAPLANE_DAEMON_IMPAIR_REQUEST_H_
#define GRADCUBE_DATAPLANE_DAEMON_IMPAIR_REQUEST_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "control/plan/topology.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

// Does what the request asks for. Throws control::UsageError, which names what is accepted, and
// then has changed nothing. Returns {"changed":<links>}, those that were not so before, and what
// impairments_report() returns.
// topology: of the fabric's servers. seed: the one that the user gave the fabric.
nlohmann::ordered_json impair(EmbeddedFabric& fabric, const control::Topology& topology,
                              const nlohmann::json& request, std::uint64_t seed);

// {"impairments":{"loss":..,"duplicate":..,"reorder":..,"corrupt":..,"up":true,"seed":..},
//  "impaired_links":[{"server":[2,1],"level":1,"switch":"1/[*,1]","loss":..,...}]}
// The first holds for every link that is not in the list.
nlohmann::ordered_json impairments_report(const EmbeddedFabric& fabric, std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_IMPAIR_REQUEST_H_
