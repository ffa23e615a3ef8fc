// What is wrong with the links of a cluster and what its switches count, put together from the
// daemons that have the switches.
//
// Pure functions.
#ifndef GRADCUBE_DATAPLANE_BED_MERGED_LINKS_H_
#define GRADCUBE_DATAPLANE_BED_MERGED_LINKS_H_

#include <cstdint>
#include <nlohmann/json.hpp>
#include <vector>

#include "control/plan/base/topology.h"
#include "control/settings/switch_parts.h"
#include "dataplane/bed/bed_links.h"

namespace gradcube::dataplane {

// reports: by part, the status of its daemon, which has "impairments", "impaired_links" and
// "switches"; null if there is none. Its links are then reported as down. Returns the same three
// fields for the cluster. links: of the topology. seed: that the user gave.
nlohmann::ordered_json merged_links(const control::Topology& topology,
                                    const std::vector<BedLink>& links,
                                    const control::SwitchParts& parts, std::uint64_t seed,
                                    const std::vector<nlohmann::ordered_json>& reports);

}  // namespace gradcube::dataplane

#endif  // GRADCUBE_DATAPLANE_BED_MERGED_LINKS_H_
