// What the emulated switches of this process are asked: the request {"command":"impair",...} of the
// control socket (dataplane/bed/link_request.h), and what `gradcube status` shows of them.
//
// The control thread's.
#ifndef GRADCUBE_DATAPLANE_DAEMON_SWITCH_REQUESTS_H_
#define GRADCUBE_DATAPLANE_DAEMON_SWITCH_REQUESTS_H_

#include <cstdint>
#include <nlohmann/json.hpp>

#include "control/plan/base/topology.h"
#include "dataplane/fabric/emulated/embedded_fabric.h"

namespace gradcube::dataplane {

// Does what the request asks for. Throws control::UsageError, which names what is accepted, and
// then has changed nothing. Returns {"changed":<links>}, those that were not so before, and what
// impairments_report() returns.
// topology: of the fabric's servers. seed: the one that the user gave the fabric.
nlohmann::ordered_json impair(EmbeddedFabric& fabric, const control::Topology& topology,
                              const nlohmann::json& request, std::uint64_t seed);

// As link_report() says.
nlohmann::ordered_json impairments_report(const EmbeddedFabric& fabric, std::uint64_t seed);

// The same, and "switches": an entry for each, with the sums of what its ports count.
nlohmann::ordered_json switches_report(const EmbeddedFabric& fabric, std::uint64_t seed);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_DAEMON_SWITCH_REQUESTS_H_
